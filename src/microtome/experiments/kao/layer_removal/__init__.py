"""Layer removal: what may be cut without training, and what it saves."""

from __future__ import annotations

from microtome.experiments.kao.layer_removal import claims, plan, report
from microtome.experiments.kit.experiment import Experiment

EXPERIMENT = Experiment(
    name=plan.NAME,
    section="Kao et al. 2021, abstract (removal), without training",
    question="Which layers may be cut, and what does it save?",
    method=plan.__doc__ or "",
    columns=(
        "strategy", "edit", "layers", "metric", "value", "delta", "low", "high", "p", "p_holm",
        "p_bh", "p_maxt", "parameters", "flops_per_token", "speed",
    ),
    plan=plan.plan,
    views=report.views,
    front=report.front,
    finding=report.finding,
    summary=report.summary,
    claims=claims.claims,
    options=plan.OPTIONS,
)  # fmt: skip
