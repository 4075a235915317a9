"""The paper's claim about attention patterns: how many maps are heterogeneous, at most."""

from __future__ import annotations

from microtome.experiments.kit.wording import percent
from microtome.experiments.kovaleva.attention_patterns.report import (
    HETEROGENEOUS,
    of_all_maps,
    with_interval,
)
from microtome.views import TidyRows


def claims(rows: TidyRows) -> dict[str, str]:
    """The share of heterogeneous maps among all."""
    row = of_all_maps(rows)[HETEROGENEOUS]
    return {
        HETEROGENEOUS: f"at most {with_interval(row, 'share', 'low', 'high')},"
        f" corrected {percent(row['corrected'])}"
    }
