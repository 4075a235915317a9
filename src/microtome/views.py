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
SHOWN_ROWS = 10  # of a table, before the rest is folded


@dataclass(frozen=True)
class Series:
    """One line of a curve, with an interval where there is one.

    ``notes`` say what is behind each point, such as the edit; a reader who points at one sees it.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    is_control: bool = False  # drawn to be compared with, not as a result
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Level:
    """A value to compare a curve with, such as a baseline: a dotted horizontal line.

    It has the colour of the series with the same name, if there is one.
    """

    name: str
    y: float


@dataclass(frozen=True)
class Curve:
    """Values against a number: depth, layers, re-initialised layers.

    ``divider`` is where a vertical line is drawn, as between real and duplicated layers.
    ``says`` is what its rows show for sure ("Layers 0 to 2 carry the task"), empty where nothing
    is; a page has it above the title, which names the method.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    percent: bool = True
    divider: float | None = None
    divider_label: str = ""
    levels: tuple[Level, ...] = ()
    says: str = ""


@dataclass(frozen=True)
class BarSeries:
    """One value for every group of a bar chart, with intervals where there are some."""

    name: str
    values: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()


def ends_at(series: Series | BarSeries, i: int) -> tuple[float | None, float | None]:
    """The ends of the interval of a series' value at place ``i``; None where it has none."""
    low = series.low[i] if i < len(series.low) else None
    high = series.high[i] if i < len(series.high) else None
    return low, high


@dataclass(frozen=True)
class Bars:
    """Values of named things: scores per start, or (``stacked``) shares of patterns per task."""

    title: str
    x_label: str
    y_label: str
    groups: tuple[str, ...]
    series: tuple[BarSeries, ...]
    stacked: bool = False
    percent: bool = True
    says: str = ""


@dataclass(frozen=True)
class HeatMap:
    """A value for every layer and head (or any two labels); None is drawn as missing.

    ``diverging`` maps have 0 as their neutral colour. ``marked`` cells get a diamond, which means
    ``mark_label``. Colours run from the least to the largest value, unless ``span`` says otherwise.
    ``notes`` are what a reader who points at a cell sees besides its value.
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
    says: str = ""
    notes: tuple[tuple[str, ...], ...] = ()


Figure = Curve | HeatMap | Bars


@dataclass(frozen=True)
class Panels:
    """Small multiples: figures of one kind with one scale (y axis, or colours) and one legend."""

    title: str
    panels: tuple[Figure, ...]
    says: str = ""


@dataclass(frozen=True)
class Table:
    """Rows as they are; numbers in ``percent`` columns are shown in percent.

    ``groups`` are a second header row above the columns: a label ("" for none) and how many columns
    it spans. ``better`` and ``worse`` are cells (row, column) marked against a baseline. A page
    shows the ``first`` rows and folds the rest, so the rows worth reading come first.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    percent: tuple[str, ...] = ()
    groups: tuple[tuple[str, int], ...] = ()
    better: tuple[tuple[int, int], ...] = ()
    worse: tuple[tuple[int, int], ...] = ()
    first: int = SHOWN_ROWS


@dataclass(frozen=True)
class Sentences:
    """A text, and what each depth makes of it; wrong tokens stand out."""

    title: str
    tokens: tuple[str, ...]
    decoded: tuple[tuple[str, tuple[str, ...]], ...]  # (label of the row, its tokens)


View = Figure | Panels | Table | Sentences


@dataclass(frozen=True)
class Card:
    """A number to see first: what it is, the number with its unit, and what to know of it.

    Card("accuracy", "87.3 %", "84.1 to 90.0 on 400 rows")
    """

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Headline:
    """What a page says first: a sentence that answers, and the numbers behind it.

    Of ``sentence`` a page shows the first one large. ``cards`` are three to five, the one that
    matters most first; ``sure`` says in at most two sentences how far to believe them.
    """

    sentence: str
    cards: tuple[Card, ...]
    sure: str


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
    notes: str = "",
) -> Series:
    """A line of tidy rows, by the names of their columns.

    ``ends`` are those of the interval, ``notes`` is the column that says what is behind a point.
    """
    xs, ys = tuple(float(row[x]) for row in rows), tuple(row[y] for row in rows)
    low, high = (tuple(row[end] for row in rows) for end in ends) if ends else ((), ())
    said = tuple(str(row[notes] or "as it is") for row in rows) if notes else ()
    return Series(name, xs, ys, low, high, is_control=is_control, notes=said)


def table_of(
    title: str,
    rows: TidyRows,
    columns: Sequence[str],
    *,
    percent: Sequence[str] = (),
    first: int = SHOWN_ROWS,
) -> Table:
    """A table of some columns of tidy rows."""
    cells = tuple(tuple(row.get(column) for column in columns) for row in rows)
    return Table(title, tuple(columns), cells, tuple(percent), first=first)
