"""Which heads and layers a model needs for a task: the experiment ``head-disabling``."""

from __future__ import annotations

from microtome.experiments.kit.experiment import Experiment
from microtome.experiments.kovaleva.head_disabling import claims, plan, report

EXPERIMENT = Experiment(
    name=plan.NAME,
    section="Kovaleva et al. 2019, Disabling self-attention heads",
    question="Which heads and layers does the model need for this task?",
    method=plan.__doc__ or "",
    columns=(
        "layer", "head", "metric", "primary", "value", "delta", "low", "high", "p", "p_holm",
        "p_bh", "p_maxt",
    ),
    plan=plan.plan,
    views=report.views,
    finding=report.finding,
    summary=report.summary,
    claims=claims.claims,
    options=plan.OPTIONS,
)  # fmt: skip
