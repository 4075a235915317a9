"""The drawing of a heat map: a cell for every pair of labels, its value readable without colour."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from microtome.report.drawing import Drawing, Label, Mark, Outline, Style, box
from microtome.report.palette import N_STEPS
from microtome.report.text import is_number, number, plain, shortened, signed, width_of
from microtome.views import HeatMap, View

TOP = 42
GAP = 2
NARROWEST = 340.0  # room for the legend below a small grid


@dataclass(frozen=True)
class Grid:
    """Where the cells lie."""

    left: float
    cell: float
    height: float
    shows_values: bool

    def corner(self, row: int, column: int) -> tuple[float, float]:
        """The upper left corner of a cell."""
        return self.left + column * self.cell, TOP + row * self.height


def draw_heat_map(view: HeatMap, style: Style) -> Drawing:
    """A heat map that fits the width if its cells can; else it is wider, and scrolls.

    On paper it never is: cells are narrower there, and not every one is numbered.
    """
    marks, grid_width, bottom = plot_heat_map(view, style)
    wide = style.width if style.is_paper else max(grid_width, min(style.width, NARROWEST))
    legend = heat_map_legend(view, bottom + 18, wide)
    return Drawing(wide, bottom + 58, (*marks, *legend), heat_map_summary(view))


def plot_heat_map(view: HeatMap, style: Style) -> tuple[list[Mark], float, float]:
    """The cells and their labels, how wide they are, and where they end."""
    grid = _grid(view, style)
    marks = [*_labels(view, grid), *_cells(view, grid, _Colors(view))]
    right = grid.left + len(view.columns) * grid.cell + 4
    return marks, right, TOP + len(view.rows) * grid.height


def with_span(views: Sequence[HeatMap]) -> list[HeatMap]:
    """The maps with one span of colours, that of all their values."""
    values = [v for view in views for v in (view.span or known_values(view))]
    span = (min(values), max(values)) if values else None
    return [replace(view, span=span) for view in views]


def on_one_scale(views: Sequence[View]) -> tuple[View, ...]:
    """The views, heat maps of the same value with the same colours: a reader compares them."""
    spans: dict[tuple[str, bool, bool], list[float]] = {}
    for view in views:
        if isinstance(view, HeatMap):
            spans.setdefault(_value_of(view), []).extend(known_values(view))
    return tuple(
        replace(view, span=(min(spans[key]), max(spans[key])))
        if isinstance(view, HeatMap) and view.span is None and spans[key := _value_of(view)]
        else view
        for view in views
    )


def _value_of(view: HeatMap) -> tuple[str, bool, bool]:
    return view.value_label, view.diverging, view.percent


def known_values(view: HeatMap) -> list[float]:
    """The cells of a map that were measured."""
    return [float(v) for row in view.values for v in row if v is not None and is_number(v)]


def _grid(view: HeatMap, style: Style) -> Grid:
    names = [plain(name) for name in view.rows]
    names.append(_row_heading(view))
    left = min(120.0, max(width_of(name, 12) for name in names)) + 14
    longest_name = max([width_of(plain(name), 12) + 4 for name in view.columns] + [0.0])
    cell = (style.width - left - 4) / max(len(view.columns), 1)
    # Labels that don't fit are cut; before that, the figure grows and scrolls in its box.
    least = 0.0 if style.is_paper else max(17.0, min(longest_name, 72.0))
    cell = min(max(52.0, min(longest_name, 140.0)), max(least, cell))
    longest = max([width_of(text, 10.5) for row in _texts(view) for text in row] + [0.0])
    shows_values = cell - GAP >= longest + 3 and cell >= 30
    return Grid(left, cell, min(30.0, max(18.0, 0.7 * cell)), shows_values)


def _row_heading(view: HeatMap) -> str:
    return plain(view.row_label) + " ↓"


class _Colors:
    """The step of the colour map that a value falls on."""

    def __init__(self, view: HeatMap) -> None:
        known = view.span or known_values(view) or (0.0,)
        self.low, self.high = min(known), max(known)
        if view.diverging:
            reach = max(abs(self.low), abs(self.high))
            self.low, self.high = -reach, reach
        self.kind = "d" if view.diverging else "q"

    def pen(self, value: float) -> str:
        if self.high <= self.low:
            return f"{self.kind}{N_STEPS // 2}"
        share = (value - self.low) / (self.high - self.low)
        return f"{self.kind}{round(share * (N_STEPS - 1))}"


def _texts(view: HeatMap) -> list[list[str]]:
    return [[_short(view, value) for value in row] for row in view.values]


def _short(view: HeatMap, value: float | None) -> str:
    if value is None or not is_number(value):
        return ""
    if not view.percent and all(v == 0 or 0.1 <= abs(v) <= 1 for v in known_values(view)):
        return signed(f"{value:.3f}", plus=view.diverging)  # cosines: as many digits in all cells
    return number(value, percent=view.percent, plus=view.diverging)


def _long(view: HeatMap, value: float | None) -> str:
    """A value with its unit: "+1.2 points", "share 31.0 %"."""
    text, unit = _short(view, value), plain(view.value_label)
    if not text:
        return "not measured"
    if view.percent and "point" not in unit:
        return f"{unit} {text} %"
    return f"{text} {unit}" if view.percent else f"{unit} {text}"


def _labels(view: HeatMap, grid: Grid) -> Iterator[Mark]:
    yield Label(4, TOP - 8, shortened(_row_heading(view), grid.left - 6, 12), "name")
    yield Label(grid.left, 14, plain(view.column_label) + " →", "name")
    widest = max([width_of(plain(name), 12) for name in view.columns if name.isdigit()] + [0.0])
    every = max(1, math.ceil((widest + 2) / grid.cell)) if widest else 1  # numbers may be left out
    for j, name in enumerate(view.columns):
        if j % every:
            continue
        x, _ = grid.corner(0, j)
        text = shortened(plain(name), grid.cell * every, 12)
        yield Label(x + (grid.cell - GAP) / 2, TOP - 8, text, anchor="middle")
    for i, name in enumerate(view.rows):
        _, y = grid.corner(i, 0)
        text = shortened(plain(name), grid.left - 12, 12)
        yield Label(grid.left - 8, y + grid.height / 2 + 3.5, text, anchor="end")


def _cells(view: HeatMap, grid: Grid, scale: _Colors) -> Iterator[Mark]:
    marked, mark = set(view.marked), plain(view.mark_label)
    size = grid.cell - GAP, grid.height - GAP
    for i, row in enumerate(view.values):
        for j, value in enumerate(row):
            x, y = grid.corner(i, j)
            hint = (
                f"{plain(view.row_label)} {plain(view.rows[i])}, "
                f"{plain(view.column_label)} {plain(view.columns[j])}: {_long(view, value)}"
            )
            if i < len(view.notes) and view.notes[i][j]:
                hint += f" ({plain(view.notes[i][j])})"
            if value is None or not is_number(value):
                yield box(x + 0.5, y + 0.5, size[0] - 1, size[1] - 1, "missing", hint)
                continue
            pen = scale.pen(value)
            yield box(x, y, *size, pen, hint + (f", {mark}" if (i, j) in marked else ""))
            if grid.shows_values:
                middle = x + size[0] / 2, y + size[1] / 2 + 4
                yield Label(*middle, _short(view, value), f"{pen}t", anchor="middle")
            if (i, j) in marked:
                corner = (x + size[0] - 5.5, y + 5.5) if grid.shows_values else (
                    x + size[0] / 2, y + size[1] / 2)  # fmt: skip
                yield _diamond(*corner, 4.0, f"{pen}t")


def _diamond(x: float, y: float, r: float, pen: str) -> Outline:
    return Outline(((x, y - r), (x + r, y), (x, y + r), (x - r, y)), pen, closed=True)


def heat_map_legend(view: HeatMap, y: float, wide: float) -> Iterator[Mark]:
    """The colour scale with its ends, and what the diamond means."""
    scale, strip = _Colors(view), 7.0
    for step in range(N_STEPS):
        yield box(4 + step * strip, y, strip, 10, f"{scale.kind}{step}")
    right = 4 + N_STEPS * strip
    ends = [(4.0, "start", scale.low), (right, "end", scale.high)]
    for x, anchor, value in ends:
        yield Label(x, y + 24, _short(view, value), anchor=anchor)  # type: ignore[arg-type]
    if view.diverging:
        yield Label((4 + right) / 2, y + 24, "0", anchor="middle")
    unit = plain(view.value_label) + (
        " (%)" if view.percent and "point" not in view.value_label else ""
    )
    yield Label(right + 10, y + 9, shortened(unit, wide - right - 12, 12), "name")
    if view.marked:
        yield _diamond(right + 14, y + 20, 4.0, "sign")
        text = shortened(plain(view.mark_label), wide - right - 26, 12)
        yield Label(right + 24, y + 24, text)


def heat_map_summary(view: HeatMap) -> str:
    """What a heat map shows, in words."""
    known = known_values(view)
    words = f"{plain(view.title)}. Heat map, {len(view.rows)} {plain(view.row_label)} rows by"
    words += f" {len(view.columns)} {plain(view.column_label)} columns"
    if not known:
        return f"{words}; nothing measured."
    ends = f"{_short(view, min(known))} to {_long(view, max(known))}"
    marks = f"; {len(view.marked)} {plain(view.mark_label)}" if view.marked else ""
    return f"{words}; {ends}{marks}."
