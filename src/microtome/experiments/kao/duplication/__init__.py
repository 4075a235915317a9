"""Duplication: models with more layers, or fewer, decoded and fine-tuned."""

from __future__ import annotations

from microtome.experiments.kao.duplication import claims, plan, report
from microtome.experiments.kit.experiment import Experiment

EXPERIMENT = Experiment(
    name=plan.NAME,
    section="Kao et al. 2020, section 3; 2021, sections 3.2 and 4.2",
    question="Would more layers help, or fewer do?",
    method=plan.__doc__ or "",
    columns=(
        "layers", "strategy", "edit", "seed", "stage", "metric", "value", "low", "high", "n",
        "control", "selection",
    ),
    plan=plan.plan,
    views=report.views,
    finding=report.finding,
    summary=report.summary,
    claims=claims.claims,
    options=plan.OPTIONS,
)  # fmt: skip
