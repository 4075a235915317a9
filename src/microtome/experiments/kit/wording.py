"""Numbers in words, one way for all: differences in points with their sign, scores in percent.

A claim gets one of three words: holds, doesn't hold, can't tell.
"""

from __future__ import annotations

from collections.abc import Sequence

from microtome.statistics import SeedDifference
from microtome.statistics.seeds import ENOUGH_SEEDS
from microtome.views import TidyRow, TidyRows

HOLDS, DOESNT_HOLD, CANT_TELL = "holds", "doesn't hold", "can't tell"


def points(value: float) -> str:
    """A difference in percentage points, with its sign: +1.2, −0.5."""
    shown = f"{100 * value:+.1f}"
    return "+0.0" if shown == "-0.0" else shown.replace("-", "−")


def percent(value: float) -> str:
    """A score in percent: 87.3 %."""
    shown = f"{100 * value:.1f}"
    return "0.0 %" if shown == "-0.0" else f"{shown} %".replace("-", "−")


def change(value: float, low: float | None = None, high: float | None = None) -> str:
    """A difference with its interval, where it has one: −0.4 points (−1.1 to +0.3)."""
    shown = f"{points(value)} points"
    return shown if low is None or high is None else f"{shown} ({points(low)} to {points(high)})"


def counted(n: int, thing: str) -> str:
    """A number of things: no head, 1 head, 2 heads."""
    return f"{n or 'no'} {thing}{'' if n == 1 else 's'}"


def unit_of(row: TidyRow) -> str:
    """What a row's ``n`` counts: rows, sentences, pairs, queries."""
    unit: str = row.get("unit") or "rows"
    return unit


def verdict(holds: bool | None) -> str:
    """The word for it."""
    return CANT_TELL if holds is None else HOLDS if holds else DOESNT_HOLD


def judged(holds: bool | None, numbers: str, rows: TidyRows, tasks: Sequence[str]) -> str:
    """A verdict with its numbers; on a task that the claim isn't about, the numbers alone."""
    task = rows[0].get("task", "")
    return (
        f"{verdict(holds)}: {numbers}" if task in tasks else f"on {task or 'this data'}: {numbers}"
    )


def enough_seeds(rows: TidyRows) -> bool:
    """Whether there are as many seeds as a verdict on trained models needs."""
    return len({row["seed"] for row in rows}) >= ENOUGH_SEEDS


def above(found: SeedDifference, bound: float) -> bool | None:
    """Whether a difference is sure to lie above ``bound``; None where the seeds don't decide."""
    if found.interval is None or found.interval.low <= bound <= found.interval.high:
        return None
    return found.interval.low > bound
