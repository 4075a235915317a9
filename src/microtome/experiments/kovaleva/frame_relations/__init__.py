"""Whether heads link a predicate with what fills its frame."""

from __future__ import annotations

from microtome.experiments.kit.experiment import Experiment
from microtome.experiments.kovaleva.frame_relations import claims, plan, report

EXPERIMENT = Experiment(
    name=plan.NAME,
    section="Kovaleva et al. 2019, Relation-specific heads in BERT",
    question="Do heads link a predicate with what fills its frame?",
    method=plan.__doc__ or "",
    columns=(
        "direction", "layer", "head", "score", "low", "high", "n", "control", "stripe_control",
        "count_control", "p", "p_max", "delta",
    ),
    plan=plan.plan,
    views=report.views,
    finding=report.finding,
    summary=report.summary,
    claims=claims.claims,
    options=plan.OPTIONS,
    needs_rows=False,
)  # fmt: skip
