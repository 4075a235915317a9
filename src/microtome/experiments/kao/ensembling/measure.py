"""The trial of ensembling: stored logits in, the scores of all ensembles out. No model is run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microtome.experiments.kao.ensembling.ensemble_rules import Ensembles, Member, ensemble_rows
from microtome.experiments.kao.ensembling.plan import RUN
from microtome.experiments.kit.stored_predictions import Judge, stored_logits
from microtome.experiments.kit.subject import MODEL
from microtome.experiments.kit.trial_inputs import opened_rows
from microtome.runs import Context, Result


def ensemble(request: Mapping[str, Any], context: Context) -> Result:
    """Sum the stored probabilities, rule by rule, and score."""
    judge = Judge.of(opened_rows(request, context), Path(context.where[MODEL]))
    arrays = Path(context.where[RUN]) / "arrays"
    logits = {
        Member(layers, seed, strategy): stored_logits(arrays / f"{hash}.npz")
        for hash, layers, seed, strategy in request["members"]
    }
    rows = ensemble_rows(Ensembles(judge, logits), top=request["top"], n_splits=request["halves"])
    return Result(rows=rows, summary={judge.metric: rows[0]["value"]})
