"""Whether heads follow links between words, or only their distance."""

from __future__ import annotations

from microtome.experiments.kit.experiment import Experiment
from microtome.experiments.kovaleva.token_links import claims, plan, report

EXPERIMENT = Experiment(
    name=plan.NAME,
    section="Kovaleva et al. 2019, Token-to-token attention",
    question="Do heads follow links between words, or only their distance?",
    method=plan.__doc__ or "",
    columns=(
        "link", "direction", "layer", "head", "attention", "low", "high", "n", "control",
        "stripe_control", "excess", "p_maxt", "diagonal", "feature",
    ),
    plan=plan.plan,
    views=report.views,
    finding=report.finding,
    summary=report.summary,
    claims=claims.claims,
    options=plan.OPTIONS,
    needs_rows=False,
)  # fmt: skip
