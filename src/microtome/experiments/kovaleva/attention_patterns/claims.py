"""The paper's claim about attention patterns: how many maps are heterogeneous, at most."""

from __future__ import annotations

from microtome.experiments.kit.answer import from_row, opposite, sure_above
from microtome.experiments.kit.wording import percent
from microtome.experiments.kovaleva.attention_patterns.report import (
    HETEROGENEOUS,
    of_all_maps,
    with_interval,
)
from microtome.papers.answer import Answer
from microtome.views import TidyRows

MOST = 0.61  # the largest share that the paper reports
MOST_ON = {"mrpc": 0.32, "micro-paraphrase": 0.32}


def claims(rows: TidyRows) -> dict[str, Answer]:
    """The share of heterogeneous maps among all.

    Holds where its interval is at or below what the paper reports at most: 32 % on MRPC, 61 %
    elsewhere; doesn't hold where it is above. The corrected share decides nothing: the paper's is
    uncorrected.
    """
    row = of_all_maps(rows)[HETEROGENEOUS]
    most = MOST_ON.get(rows[0].get("task", ""), MOST)
    words = (
        f"at most {with_interval(row, 'share', 'low', 'high')},"
        f" corrected {percent(row['corrected'])}"
    )
    holds = opposite(sure_above(row["low"], row["high"], most))
    return {HETEROGENEOUS: from_row(holds, words, row, ("share", "low", "high"), "%")}
