"""The shape of a curve of fine-tuned arms: its concavity, from the arms' stored answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microtome.experiments.kit.paired_comparison import as_metric
from microtome.experiments.kit.stored_predictions import Judge, stored_logits
from microtome.experiments.kit.subject import MODEL
from microtome.experiments.kit.trial_inputs import opened_rows
from microtome.experiments.singh.reinitialization.plan import CONCAVITY
from microtome.runs import Context, Result
from microtome.statistics.concavity import areas


def measure_concavity(request: Mapping[str, Any], context: Context) -> Result:
    """The areas between a curve and its chord, with intervals over the measured rows."""
    dev = opened_rows(request, context)
    judge = Judge.of(dev, Path(context.where[MODEL]))
    trained = {count: context.needs[need] for need, count in request["counts"].items()}
    counts = sorted(trained)
    arrays = [trained[count].arrays for count in counts]
    metrics = [
        as_metric(judge.outcomes(stored_logits(path))[judge.metric])
        for path in arrays
        if path is not None
    ]
    absolute, signed = areas(counts, metrics, clusters=dev.scored_clusters)
    row = {
        **request["about"], "reinitialized": None, "layer": None, "edit": None,
        "metric": CONCAVITY,
        "value": absolute.value, "low": absolute.low, "high": absolute.high, "n": absolute.n,
        "signed": signed.value, "signed_low": signed.low, "signed_high": signed.high,
        "n_counts": len(counts),
    }  # fmt: skip
    return Result(rows=[row], summary={CONCAVITY: signed.value})
