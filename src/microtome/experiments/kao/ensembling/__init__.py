"""Ensembling: fine-tuned models of several depths together."""

from __future__ import annotations

from microtome.experiments.kao.ensembling import claims, plan, report
from microtome.experiments.kit.experiment import Experiment

EXPERIMENT = Experiment(
    name=plan.NAME,
    section="Kao et al. 2020, Table 2; 2021, Tables 5 and 6",
    question="Are ensembles over depths better than ensembles over seeds?",
    method=plan.__doc__ or "",
    columns=(
        "rule", "members", "metric", "value", "low", "high", "n", "selection", "candidates",
        "gain", "gain_low", "gain_high",
    ),
    plan=plan.plan,
    views=report.views,
    finding=report.finding,
    summary=report.summary,
    claims=claims.claims,
    needs_rows=False,
    find_subject=plan.find_subject,
    options=plan.OPTIONS,
)  # fmt: skip
