"""What can be read from each depth without fine-tuning: the experiment ``frozen-probing``."""

from __future__ import annotations

from microtome.experiments.kit.experiment import Experiment
from microtome.experiments.singh.frozen_probing import claims, plan, report

EXPERIMENT = Experiment(
    name=plan.NAME,
    section="Singh & Giovanardi 2020, section 4.4",
    question="How much of the task can be read from each depth, without fine-tuning?",
    method=plan.__doc__ or "",
    columns=(
        "removed", "fraction", "n_train", "encoder", "recipe", "feature", "seed", "metric", "value",
        "low", "high", "n", "delta",
    ),
    plan=plan.plan,
    views=report.views,
    finding=report.finding,
    summary=report.summary,
    claims=claims.claims,
    options=plan.OPTIONS,
)  # fmt: skip
