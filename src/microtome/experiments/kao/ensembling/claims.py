"""The papers' claim about ensembles, as these rows answer it."""

from __future__ import annotations

from microtome.experiments.kao.ensembling.report import (
    baseline_not_learnt,
    equal_size_finding,
    rule_finding,
)
from microtome.views import TidyRows


def claims(rows: TidyRows) -> dict[str, str]:
    """``ensembles`` → what the papers' top ensemble gains, and one of equal size."""
    compared = (rule_finding(rows, "top-"), equal_size_finding(rows))
    answer = baseline_not_learnt(rows) or " ".join(filter(None, compared))
    return {"ensembles": answer} if answer else {}
