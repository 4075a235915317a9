"""Three words for a claim: holds, doesn't hold, can't tell."""

from __future__ import annotations

from collections.abc import Sequence

from microtome.statistics import SeedDifference
from microtome.statistics.seeds import ENOUGH_SEEDS
from microtome.views import TidyRows

HOLDS, DOESNT_HOLD, CANT_TELL = "holds", "doesn't hold", "can't tell"


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
