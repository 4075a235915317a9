"""Whose attention fine-tuning changes: the experiment ``attention-drift``."""

from __future__ import annotations

from microtome.experiments.kit.experiment import Experiment
from microtome.experiments.kovaleva.attention_drift import claims, plan, report

EXPERIMENT = Experiment(
    name=plan.NAME,
    section="Kovaleva et al. 2019, Change in self-attention patterns after fine-tuning",
    question="Whose attention does fine-tuning change?",
    method=plan.__doc__ or "",
    columns=(
        "layer", "head", "cosine", "low", "high", "n", "other_heads_cosine", "seed_cosine",
        "jensen_shannon", "seed",
    ),
    plan=plan.plan,
    views=report.views,
    finding=report.finding,
    summary=report.summary,
    claims=claims.claims,
    options=plan.OPTIONS,
)  # fmt: skip
