"""From numbers to verdicts: what decides whether a paper's claim holds in these rows; no torch.

An interval decides. One that has values on both sides of what a claim says gives "can't tell".
A claim about some tasks is judged on these and on the embedded tasks in their place; on any other
task the numbers are given without a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from microtome.papers.answer import CANT_TELL, DOESNT_HOLD, HOLDS, Answer, Unit, Verdict
from microtome.statistics import SeedDifference, SeedScore
from microtome.statistics.seeds import ENOUGH_SEEDS
from microtome.views import TidyRow, TidyRows

# The embedded tasks, and the published ones that they are made after.
IN_PLACE_OF = {
    "micro-sentiment": ("sst2", "sst2-sentence"),
    "micro-entailment": ("snli", "rte", "qnli", "mnli"),
    "micro-paraphrase": ("mrpc", "qqp"),
    "micro-similarity": ("stsb",),
    "micro-acceptability": ("cola",),
    "micro-squad": ("squad2",),
}


def verdict(holds: bool | None) -> Verdict:
    """The word for it."""
    return CANT_TELL if holds is None else HOLDS if holds else DOESNT_HOLD


def answer(holds: bool | None, words: str, difference: SeedDifference | None = None) -> Answer:
    """A verdict with its words, and the difference over seeds that it was decided by."""
    if difference is None:
        return Answer(words, verdict(holds))
    low, high = _ends(difference)
    return Answer(words, verdict(holds), difference.value, low, high)


def _ends(difference: SeedDifference | SeedScore) -> tuple[float | None, float | None]:
    found = difference.interval
    return (None, None) if found is None else (found.low, found.high)


def from_row(
    holds: bool | None, words: str, row: TidyRow, columns: Sequence[str], unit: Unit = "points"
) -> Answer:
    """A verdict with the number of a row that decided it: columns of the value and its ends."""
    value, low, high = (row.get(column) for column in columns)
    return Answer(words, verdict(holds), value, low, high, unit)


def unlearnt(why: str) -> Answer:
    """Nothing can be told, because the model hasn't learnt its task; pools leave it out."""
    return Answer(why, CANT_TELL, learnt=False)


def judged(found: Answer, rows: TidyRows, tasks: Sequence[str]) -> Answer:
    """An answer to a claim about ``tasks``; on a task that isn't one of them, the numbers alone.

    Where nothing was learnt there are no numbers, and the words stay as they are.
    """
    task = rows[0].get("task", "")
    stands_for = [name for name in IN_PLACE_OF.get(task, ()) if name in tasks]
    if not found.learnt:
        return found if stands_for or task in tasks else replace(found, verdict=None)
    if task in tasks:
        return found
    if stands_for:
        words = f"{found.words} ({task}, in the place of {' and '.join(stands_for)})"
        return replace(found, words=words)
    return replace(found, words=f"on {task or 'this data'}: {found.words}", verdict=None)


def is_about(rows: TidyRows, tasks: Sequence[str]) -> bool:
    """Whether rows are of one of ``tasks``, or of an embedded task in its place."""
    task = rows[0].get("task", "")
    return task in tasks or any(name in tasks for name in IN_PLACE_OF.get(task, ()))


def enough_seeds(rows: TidyRows) -> bool:
    """Whether there are as many seeds as a verdict on trained models needs."""
    return len({row["seed"] for row in rows}) >= ENOUGH_SEEDS


def above(found: SeedDifference | SeedScore, bound: float) -> bool | None:
    """Whether a score or difference is surely above ``bound``; None where seeds don't decide."""
    return sure_above(*_ends(found), bound)


def sure_above(low: float | None, high: float | None, bound: float) -> bool | None:
    """Whether an interval is above ``bound``; None where it has values on both sides."""
    if low is None or high is None or low <= bound <= high:
        return None
    return low > bound


def opposite(holds: bool | None) -> bool | None:
    """Not; what can't be told stays so."""
    return None if holds is None else not holds


def all_of(votes: Sequence[bool | None]) -> bool | None:
    """Whether all hold: one that doesn't decides, else one that can't be told."""
    if any(vote is False for vote in votes):
        return False
    return None if None in votes else True
