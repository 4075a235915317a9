"""Which of five patterns the heads' attention maps have: the experiment ``attention-patterns``."""

from __future__ import annotations

from microtome.experiments.kit.experiment import Experiment
from microtome.experiments.kovaleva.attention_patterns import claims, plan, report

EXPERIMENT = Experiment(
    name=plan.NAME,
    section="Kovaleva et al. 2019, BERT's self-attention patterns",
    question="What do the heads' attention maps look like, and how many may hold something more?",
    method=plan.__doc__ or "",
    columns=("checkpoint", "layer", "head", "pattern", "share", "low", "high", "n", "corrected"),
    plan=plan.plan,
    views=report.views,
    finding=report.finding,
    summary=report.summary,
    claims=claims.claims,
    find_subject=plan.find_subject,
    options=plan.OPTIONS,
)
