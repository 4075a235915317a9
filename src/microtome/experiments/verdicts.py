"""Three words for a claim: holds, doesn't hold, can't tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from microtome.experiments.experiment import Rows

if TYPE_CHECKING:
    from microtome.statistics import SeedDifference

HOLDS, DOESNT_HOLD, CANT_TELL = "holds", "doesn't hold", "can't tell"


def verdict(holds: bool | None) -> str:
    """Three words there are."""
    return CANT_TELL if holds is None else HOLDS if holds else DOESNT_HOLD


def judged(holds: bool | None, numbers: str, rows: Rows, tasks: Sequence[str]) -> str:
    """A verdict with its numbers; on a task that the claim isn't about, the numbers alone."""
    task = rows[0].get("task", "")
    return (
        f"{verdict(holds)}: {numbers}" if task in tasks else f"on {task or 'this data'}: {numbers}"
    )


def above(found: SeedDifference, bound: float) -> bool | None:
    """Whether a difference is sure to lie above ``bound``; None where the seeds don't decide."""
    if found.interval is None or found.interval.low <= bound <= found.interval.high:
        return None
    return found.interval.low > bound
