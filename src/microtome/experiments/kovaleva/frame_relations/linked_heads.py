"""Which heads follow frame links, judged from rows."""

from __future__ import annotations

from typing import Any

from microtome.views import TidyRow, TidyRows

FORWARD, BACK = "predicate→element", "element→predicate"
MOST_DISABLED = 8  # of the heads that follow links, strongest first


def forward(rows: TidyRows) -> list[Any]:
    """From the predicate to its elements, as in the paper's example."""
    return [row for row in rows if row["direction"] == FORWARD]


def follows_links(row: TidyRow) -> bool:
    """Whether the head follows links beyond their offset, and beyond chance over all heads."""
    return row["p_max"] is not None and row["p_max"] <= 0.05


def linked_heads(rows: TidyRows) -> list[Any]:
    """The rows of heads that follow links forwards, strongest first."""
    following = [row for row in forward(rows) if follows_links(row)]
    return sorted(following, key=lambda row: -row["excess"])
