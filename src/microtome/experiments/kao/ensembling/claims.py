"""The papers' claim about ensembles, as these rows answer it."""

from __future__ import annotations

from microtome.experiments.kao.ensembling.report import equal_size_finding, rule_finding
from microtome.views import TidyRows


def claims(rows: TidyRows) -> dict[str, str]:
    """``ensembles`` → what the papers' top ensemble gains, and one of equal size."""
    answer = " ".join(filter(None, (rule_finding(rows, "top-"), equal_size_finding(rows))))
    return {"ensembles": answer} if answer else {}
