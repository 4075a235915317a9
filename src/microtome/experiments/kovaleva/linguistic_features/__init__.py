"""Which kinds of words a head attends to."""

from __future__ import annotations

from microtome.experiments.kit.experiment import Experiment
from microtome.experiments.kovaleva.linguistic_features import claims, plan, report

EXPERIMENT = Experiment(
    name=plan.NAME,
    section="Kovaleva et al. 2019, Attention to linguistic features",
    question="Which kinds of words does a head attend to?",
    method=plan.__doc__ or "",
    columns=(
        "checkpoint", "feature", "layer", "head", "attention", "low", "high", "n", "times_length",
        "control", "excess", "p_maxt", "change", "p_change",
    ),
    plan=plan.plan,
    views=report.views,
    finding=report.finding,
    summary=report.summary,
    claims=claims.claims,
    options=plan.OPTIONS,
    needs_rows=False,
)  # fmt: skip
