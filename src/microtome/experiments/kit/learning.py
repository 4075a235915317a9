"""Whether a model has learnt more than one constant answer: what hasn't isn't compared; no torch.

Rows of scores say what the best constant answer scores by their metric (``constant_value``), and
whether the model gives one answer only (``one_answer``). Rows of earlier versions say neither, and
count as learnt.
"""

from __future__ import annotations

from collections.abc import Iterable

from microtome.experiments.kit.wording import percent
from microtome.statistics import over_seeds
from microtome.views import Series, TidyRow, TidyRows

CONSTANT = "one constant answer"


def constant_of(rows: Iterable[TidyRow]) -> float | None:
    """What one constant answer scores; None where rows don't say."""
    known = (row.get("constant_value") for row in rows)
    return next((value for value in known if value is not None), None)


def has_learnt(rows: TidyRows) -> bool:
    """Whether runs of one model, a row each, are better on average than one constant answer."""
    constant = constant_of(rows)
    if constant is None:
        return True
    mean = sum(row["value"] for row in rows) / len(rows)
    return bool(mean > constant) and n_one_answer(rows) < len(rows)


def surely_learnt(runs: TidyRows) -> bool:
    """Whether trained runs of scores are sure to be better than one constant answer.

    By Student's interval over seeds from three on; of fewer, by the interval of each over its rows.
    """
    constant = constant_of(runs)
    if constant is None:
        return True
    found = over_seeds([run["value"] for run in runs]).interval
    if found is not None:
        return found.low > constant
    return all(run["low"] is not None and run["low"] > constant for run in runs)


def unsure(runs: TidyRows) -> str:
    """After a score, in words: not sure to be better than one constant answer."""
    return f", not surely better than {CONSTANT} ({percent(constant_of(runs) or 0.0)})"


def n_one_answer(rows: Iterable[TidyRow]) -> int:
    """How many runs answer every row alike."""
    return sum(bool(row.get("one_answer")) for row in rows)


def no_better(rows: TidyRows) -> str:
    """After a score, in words: no better than one constant answer; empty where it is better."""
    n_alike = n_one_answer(rows)
    only = "" if n_alike < len(rows) else ", the only answer it gives"
    if not has_learnt(rows):
        return f", no better than {CONSTANT} ({percent(constant_of(rows) or 0.0)}){only}"
    return f" ({n_alike} of {len(rows)} runs give one answer only)" if n_alike else ""


def not_learnt(rows: TidyRows, what: str) -> str:
    """A sentence on why nothing is compared with these runs; empty where they have learnt."""
    if has_learnt(rows):
        return ""
    mean = sum(row["value"] for row in rows) / len(rows)
    return (
        f"{what} hasn't learnt the task: its {rows[0]['metric']} is {percent(mean)}"
        f"{no_better(rows)}, so nothing is compared with it."
    )


def constant_line(rows: Iterable[TidyRow], places: Iterable[float]) -> tuple[Series, ...]:
    """The constant answer's score over the places of a curve; empty where rows don't say."""
    constant, x = constant_of(rows), tuple(sorted(set(places)))
    return () if constant is None else (Series(CONSTANT, x, (constant,) * len(x), is_control=True),)
