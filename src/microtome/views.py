"""How rows want to be looked at, as data. An experiment makes views; the report draws them.

Scores are 0–1 here as everywhere; ``percent`` says that they are shown in percent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Cell = str | int | float | bool | None
TidyRow = Mapping[str, Any]  # one line of results.parquet: every experiment speaks in these
TidyRows = Sequence[TidyRow]


@dataclass(frozen=True)
class Series:
    """One line of a curve, with an interval where there is one."""

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    is_control: bool = False  # drawn to be compared with, not as a result


@dataclass(frozen=True)
class Curve:
    """Values against a number: depth, layers, re-initialised layers."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    percent: bool = True


@dataclass(frozen=True)
class HeatMap:
    """A value for every layer and head (or any two labels); None is drawn as missing.

    ``diverging`` maps have 0 as their neutral colour. ``marked`` cells get a diamond, which means
    ``mark_label``. Colours run from the least to the largest value, unless ``span`` says otherwise.
    """

    title: str
    row_label: str
    column_label: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    value_label: str
    marked: tuple[tuple[int, int], ...] = ()
    diverging: bool = False
    percent: bool = True
    mark_label: str = "significant"
    span: tuple[float, float] | None = None


@dataclass(frozen=True)
class Table:
    """Rows as they are; numbers in ``percent`` columns are shown in percent."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    percent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sentences:
    """A text, and what each depth makes of it; wrong tokens stand out."""

    title: str
    tokens: tuple[str, ...]
    decoded: tuple[tuple[str, tuple[str, ...]], ...]  # (label of the row, its tokens)


View = Curve | HeatMap | Table | Sentences


@dataclass(frozen=True)
class Step:
    """Something to do after reading a page: what it is, and the command or path to copy."""

    text: str
    command: str


def series_of(
    name: str,
    rows: TidyRows,
    x: str,
    y: str,
    *,
    ends: tuple[str, str] | tuple[()] = (),
    is_control: bool = False,
) -> Series:
    """A line of tidy rows, by the names of their columns; ``ends`` are those of the interval."""
    xs, ys = tuple(float(row[x]) for row in rows), tuple(row[y] for row in rows)
    low, high = (tuple(row[end] for row in rows) for end in ends) if ends else ((), ())
    return Series(name, xs, ys, low, high, is_control=is_control)


def table_of(
    title: str,
    rows: TidyRows,
    columns: Sequence[str],
    *,
    percent: Sequence[str] = (),
) -> Table:
    """A table of some columns of tidy rows."""
    cells = tuple(tuple(row.get(column) for column in columns) for row in rows)
    return Table(title, tuple(columns), cells, tuple(percent))
