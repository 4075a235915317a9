"""Decoding: every depth read through the output layer."""

from __future__ import annotations

from microtome.experiments.kao.decoding import claims, plan, report
from microtome.experiments.kit.experiment import Experiment

EXPERIMENT = Experiment(
    name=plan.NAME,
    section="Kao et al. 2020, section 2; 2021, section 3.1",
    question="Which depths already speak the language of the output layer?",
    method=plan.__doc__ or "",
    columns=("layers", "depth", "accuracy", "first_token_accuracy", "low", "high", "control"),
    plan=plan.plan,
    views=report.views,
    finding=report.finding,
    summary=report.summary,
    claims=claims.claims,
    find_subject=plan.find_subject,
    options=plan.OPTIONS,
)
