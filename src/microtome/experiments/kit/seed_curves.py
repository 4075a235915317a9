"""Curves of trained arms: the mean over seeds at every point, with the interval it can have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from microtome.experiments.kit.wording import change
from microtome.statistics import SeedDifference, compare_seeds, over_seeds
from microtome.views import Series, TidyRow

# Re-initialised and removed layers count alike, so that the two curves can lie over each other.
TOP_AXIS = "top layers without their pre-training"


def by_place(rows: Iterable[TidyRow], column: str) -> dict[int, list[TidyRow]]:
    """The rows of every place of a curve, in order; a row of the same seed counts once."""
    found: dict[int, dict[Any, TidyRow]] = {}
    for row in rows:
        if row[column] is not None:
            found.setdefault(row[column], {})[row["seed"]] = row
    return {place: list(found[place].values()) for place in sorted(found)}


def by_seed(rows: Iterable[TidyRow]) -> dict[Any, list[TidyRow]]:
    """All rows of every seed."""
    found: dict[Any, list[TidyRow]] = {}
    for row in rows:
        found.setdefault(row["seed"], []).append(row)
    return found


def curves_by_seed(curve: Mapping[int, Sequence[TidyRow]]) -> list[dict[int, float]]:
    """A curve for each seed that is at every place: place → score."""
    seeds = set.intersection(*({row["seed"] for row in runs} for runs in curve.values()))
    return [
        {
            place: next(row["value"] for row in runs if row["seed"] == seed)
            for place, runs in curve.items()
        }
        for seed in sorted(seeds)
    ]


def values(rows: Iterable[TidyRow]) -> list[float]:
    """One score per seed."""
    return [row["value"] for row in rows]


def mean_of(rows: Sequence[TidyRow]) -> float:
    """The mean score over seeds."""
    return sum(values(rows)) / len(rows)


def ends_of(rows: Sequence[TidyRow]) -> tuple[float | None, float | None]:
    """A t-interval over seeds from three on; of one run, the interval over its measured rows."""
    if len(rows) == 1:
        return rows[0]["low"], rows[0]["high"]
    found = over_seeds(values(rows)).interval
    return (None, None) if found is None else (found.low, found.high)


def curve_of(
    rows: Iterable[TidyRow], column: str, name: str, *, is_control: bool = False
) -> Series | None:
    """The curve of some rows over ``column``; None where there are none."""
    found = by_place(rows, column)
    if not found:
        return None
    ends = [ends_of(own) for own in found.values()]
    return Series(
        name,
        tuple(map(float, found)),
        tuple(mean_of(own) for own in found.values()),
        tuple(low for low, _ in ends),
        tuple(high for _, high in ends),
        is_control=is_control,
    )


def difference(changed: Sequence[TidyRow], base: Sequence[TidyRow]) -> SeedDifference:
    """Seeds against seeds."""
    return compare_seeds(values(changed), values(base))


def said(found: SeedDifference, told: set[str] | None = None) -> str:
    """A difference of trained arms in words; without enough seeds, why it decides nothing.

    Why is left out where it is among ``told``, and added there: one text says it once.
    """
    if found.interval is not None:
        return change(found.value, found.interval.low, found.interval.high)
    told = set() if told is None else told
    why = "" if found.remark in told else f" ({found.remark})"
    told.add(found.remark)
    return f"{change(found.value)}{why}"


def size_name(fraction: float) -> str:
    """A fraction as people say it: all rows, 10 % of the rows, 640 rows."""
    if fraction == 1:
        return "all rows"
    return f"{100 * fraction:g} % of the rows" if fraction < 1 else f"{fraction:,.0f} rows"


def size_with_rows(fraction: float, n_train: int) -> str:
    """A fraction with its rows counted, where it doesn't count them itself."""
    return size_name(fraction) if fraction > 1 else f"{size_name(fraction)} ({n_train:,})"


def sizes(rows: Iterable[TidyRow]) -> list[float]:
    """The fractions among some rows, the largest training set first."""
    n_rows = {row["fraction"]: row["n_train"] for row in rows if row["fraction"] is not None}
    return sorted(n_rows, key=lambda fraction: -n_rows[fraction])
