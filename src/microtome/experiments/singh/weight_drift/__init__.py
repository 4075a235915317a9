"""How far fine-tuning moved each layer's weights: the experiment ``weight-drift``."""

from __future__ import annotations

from microtome.experiments.kit.experiment import Experiment
from microtome.experiments.singh.weight_drift import claims, plan, report

EXPERIMENT = Experiment(
    name=plan.NAME,
    section="Singh & Giovanardi 2020, section 4.5",
    question="How far did fine-tuning move each layer's weights?",
    method=plan.__doc__ or "",
    columns=(
        "layer", "part", "fraction", "n_train", "seed", "distance", "relative", "per_parameter",
        "norm", "n_parameters",
    ),
    plan=plan.plan,
    views=report.views,
    finding=report.finding,
    summary=report.summary,
    claims=claims.claims,
    needs_rows=False,
    options=plan.OPTIONS,
)  # fmt: skip
