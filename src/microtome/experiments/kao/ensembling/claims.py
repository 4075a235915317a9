"""The papers' claim about ensembles, as these rows answer it."""

from __future__ import annotations

from microtome.experiments.kao.ensembling.report import (
    baseline_not_learnt,
    equal_size_finding,
    row_of,
    rule_finding,
)
from microtome.experiments.kit.answer import from_row, judged, sure_above, unlearnt
from microtome.papers.answer import Answer
from microtome.views import TidyRows

TASKS = ("squad2",)


def claims(rows: TidyRows) -> dict[str, Answer]:
    """``ensembles`` → what the papers' top ensemble gains, and one of equal size.

    Holds where the top ensemble, its members picked on other rows, is sure to be better than the
    ensemble of baseline runs; doesn't hold where it is sure to be worse.
    """
    if why := baseline_not_learnt(rows):
        return {"ensembles": judged(unlearnt(why), rows, TASKS)}
    top = row_of(rows, "top-", "other rows")
    compared = (rule_finding(rows, "top-"), equal_size_finding(rows))
    words = " ".join(filter(None, compared))
    if top is None or not words:
        return {}
    holds = sure_above(top["gain_low"], top["gain_high"], 0.0)
    found = from_row(holds, words, top, ("gain", "gain_low", "gain_high"))
    return {"ensembles": judged(found, rows, TASKS)}
