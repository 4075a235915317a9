"""What each layer's pre-training is worth: the experiment ``reinitialization``."""

from __future__ import annotations

from microtome.experiments.kit.experiment import Experiment
from microtome.experiments.singh.reinitialization import claims, plan, report

EXPERIMENT = Experiment(
    name=plan.NAME,
    section="Singh & Giovanardi 2020, section 4.3",
    question="What is each layer's pre-training worth, and how does that depend on the data?",
    method=plan.__doc__ or "",
    columns=(
        "reinitialized", "side", "layer", "fraction", "n_train", "seed", "metric", "value", "low",
        "high", "n", "edit",
    ),
    plan=plan.plan,
    views=report.views,
    finding=report.finding,
    summary=report.summary,
    claims=claims.claims,
    options=plan.OPTIONS,
)  # fmt: skip
