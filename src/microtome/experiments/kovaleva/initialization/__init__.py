"""What pre-training brings and what fine-tuning does: the experiment ``initialization``."""

from __future__ import annotations

from microtome.experiments.kit.experiment import Experiment
from microtome.experiments.kovaleva.initialization import claims, plan, report

EXPERIMENT = Experiment(
    name=plan.NAME,
    section="Kovaleva et al. 2019, Change in self-attention patterns after fine-tuning",
    question="What does pre-training bring, and what does fine-tuning?",
    method=plan.__doc__ or "",
    columns=("start", "seed", "metric", "value", "low", "high", "n"),
    plan=plan.plan,
    views=report.views,
    finding=report.finding,
    summary=report.summary,
    claims=claims.claims,
    options=plan.OPTIONS,
)
