"""The drawing of bars, in groups or stacked: they differ in texture, not in colour alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from microtome.report.axes import (
    BOTTOM,
    LEFT,
    RIGHT,
    Scale,
    known,
    legend,
    plot_height,
    value_axis,
    value_name,
    value_scale,
)
from microtome.report.drawing import Drawing, Label, Mark, Outline, Point, Style, box
from microtome.report.palette import N_SERIES
from microtome.report.text import between, is_number, number, plain, shortened, width_of
from microtome.views import Bars, BarSeries, ends_at

NARROWEST, WIDEST = 9.0, 46.0  # of a bar, in pixels
LONGEST_NAME, LONGEST_PIECE = 110.0, 60.0
NARROW = 400.0  # of a telephone
HATCHES = (
    (),
    ((1.0, -1.0),),
    ((1.0, 1.0),),
    ((1.0, 0.0),),
    ((1.0, -1.0), (1.0, 1.0)),
    ((0.0, 1.0),),
)
SPACING = 7.0  # between two lines of a texture


def draw_bars(view: Bars, style: Style) -> Drawing:
    """Bars that fit the width if their names can; else the figure is wider, and scrolls.

    On paper it never is: names have several lines there.
    """
    names, top = bar_legend([view], style.width) if len(view.series) > 1 else ([], 4.0)
    marks, right, height = plot_bars(view, style, like=[view], top=top)
    return Drawing(right, height, (*names, *marks), bar_summary(view))


def plot_bars(
    view: Bars, style: Style, *, like: Sequence[Bars], top: float
) -> tuple[list[Mark], float, float]:
    """Bars without a legend, from ``top`` on, how wide they are, and where they end.

    Their pens and their y axis are those of the bars ``like`` them.
    """
    top, width = top + 34, style.width  # the name of the y axis
    n_bars = 1 if view.stacked else max(len(view.series), 1)
    room = _room(view, style, n_bars)
    n_lines = 3 if style.is_paper or style.width < NARROW else 1
    names = [_lines_of(plain(name), room - 4, n_lines) for name in view.groups]
    bottom = top + plot_height(style)
    height = bottom + BOTTOM + 12 * (max(map(len, names), default=1) - 1)
    right = LEFT + room * len(view.groups)
    y = _scale(like, top, bottom)
    unit = value_name(view.y_label, percent=view.percent)
    marks: list[Mark] = [Label(4, top - 16, shortened(unit, width - 8, 12), "name")]
    marks += value_axis(y, right, percent=view.percent)
    pens = _pens(like)
    thick = min((room - min(12.0, room / 4)) / n_bars, WIDEST)
    for g, lines in enumerate(names):
        middle = LEFT + (g + 0.5) * room
        left = middle - n_bars * thick / 2
        marks += _stack(view, g, left, thick, y, pens) if view.stacked else _side_by_side(
            view, g, left, thick, y, pens
        )  # fmt: skip
        for k, line in enumerate(lines):
            marks.append(Label(middle, bottom + 18 + 12 * k, line, anchor="middle"))
    marks.append(Outline(((LEFT, y(0)), (right, y(0))), "axis"))
    name = shortened(plain(view.x_label), right - LEFT, 12)
    marks.append(Label((LEFT + right) / 2, height - 8, name, "name", anchor="middle"))
    return marks, max(width, right + RIGHT), height


def _room(view: Bars, style: Style, n_bars: int) -> float:
    """The width of a group."""
    room = (style.width - LEFT - RIGHT) / max(len(view.groups), 1)
    if style.is_paper:
        return room
    names, most = [plain(name) for name in view.groups], LONGEST_NAME
    if style.width < NARROW:  # they have several lines there, too
        names, most = [piece for name in names for piece in _pieces(name)], LONGEST_PIECE
    longest = max([width_of(name, 12) + 6 for name in names] + [0.0])
    return max(room, min(longest, most), n_bars * NARROWEST + 12)


def _pieces(name: str) -> list[str]:
    """What a name may be broken into."""
    return re.findall(r"[^ _-]+[ _-]*", name) or [name]


def _lines_of(name: str, room: float, most: int) -> list[str]:
    """A name in at most so many lines, broken after spaces, hyphens and underscores."""
    lines = [""]
    for piece in _pieces(name):
        if lines[-1] and width_of((lines[-1] + piece).rstrip(), 12) > room and len(lines) < most:
            lines.append("")
        lines[-1] += piece
    return [shortened(line.rstrip(" "), room, 12) for line in lines]


def _pens(charts: Sequence[Bars]) -> dict[str, int]:
    names = dict.fromkeys(series.name for chart in charts for series in chart.series)
    return {name: i % N_SERIES for i, name in enumerate(names)}


def _scale(charts: Sequence[Bars], top: float, bottom: float) -> Scale:
    """Bars begin at 0; stacked ones end at their sum."""
    ends: list[float] = []
    if charts[0].stacked:
        drawn = [
            sum(known(series.values[g] for series in chart.series))
            for chart in charts
            for g in range(len(chart.groups))
        ]
        if charts[0].percent:  # shares that add up to 1 by floating point
            drawn = [min(v, 1.0) if v < 1 + 1e-6 else v for v in drawn]
    else:
        every = [series for chart in charts for series in chart.series]
        drawn = known(v for series in every for v in series.values)
        ends = known(v for series in every for v in (*series.low, *series.high))
    return value_scale([*drawn, 0.0], ends, top, bottom, percent=charts[0].percent)


def _side_by_side(
    view: Bars, g: int, left: float, thick: float, y: Scale, pens: Mapping[str, int]
) -> Iterator[Mark]:
    for i, series in enumerate(view.series):
        value, x = series.values[g], left + i * thick
        if value is None or not is_number(value):
            continue
        yield from _bar(x, thick - 1, y(0), y(value), pens[series.name], _hint(view, series, g))
        low, high = ends_at(series, g)
        if low is not None and high is not None and is_number(low) and is_number(high):
            middle = x + (thick - 1) / 2
            whisker = ((middle, y.inside(low)), (middle, y.inside(high)))
            yield Outline(whisker, "halo")  # readable on a dark bar too
            yield Outline(whisker, "whisker")


def _stack(
    view: Bars, g: int, left: float, thick: float, y: Scale, pens: Mapping[str, int]
) -> Iterator[Mark]:
    """One bar of all series; the first is at the bottom."""
    below = 0.0
    for series in view.series:
        value = series.values[g]
        if value is None or not is_number(value):
            continue
        ends = y(below), y.inside(below + value)
        yield from _bar(left, thick, *ends, pens[series.name], _hint(view, series, g))
        below += value


def _bar(x: float, width: float, start: float, end: float, i: int, hint: str) -> Iterator[Mark]:
    """A bar with its texture; a pixel of paper keeps it from the next one."""
    top, height = min(start, end), max(abs(start - end) - 0.8, 0.6)
    yield box(x, top, width, height, f"bar{i}", hint)
    for way in HATCHES[i]:
        for line in _lines(way, x, top, width, height):
            yield Outline(line, "hatch")


def _lines(
    way: Point, x: float, y: float, width: float, height: float
) -> Iterator[tuple[Point, Point]]:
    """Parallel lines of one direction in a rectangle."""
    dx, dy = way
    if dx == 0:
        steps = range(1, int(width / SPACING) + 1)
        yield from (((x + k * SPACING, y), (x + k * SPACING, y + height)) for k in steps)
        return
    slope = dy / dx
    rise = slope * width
    first, last = min(0.0, -rise), height + max(0.0, -rise)
    for k in range(int(first // SPACING), int(last // SPACING) + 1):
        start = k * SPACING + SPACING / 2  # height at the left side
        ends = [0.0, width]
        if slope != 0:
            at = sorted(((0 - start) / slope, (height - start) / slope))
            ends = [max(0.0, at[0]), min(width, at[1])]
        elif not 0 < start < height:
            continue
        if ends[1] - ends[0] > 0.5:
            a, b = ends
            yield (x + a, y + start + slope * a), (x + b, y + start + slope * b)


def bar_legend(charts: Sequence[Bars], width: float) -> tuple[list[Mark], float]:
    """The names of the series of all charts, and the height that they take."""
    return legend(
        [(name, tuple(_bar(2, 22, -6, 7, i, ""))) for name, i in _pens(charts).items()], width
    )


def _hint(view: Bars, series: BarSeries, g: int) -> str:
    value = series.values[g]
    assert value is not None
    text = number(value, percent=view.percent) + (" %" if view.percent else "")
    low, high = ends_at(series, g)
    if low is not None and high is not None:
        text += f" ({between(low, high, percent=view.percent)})"
    return f"{plain(view.groups[g])}, {plain(series.name)}: {text}"


def bar_summary(view: Bars) -> str:
    """What a bar chart shows, in words."""
    parts = []
    for series in view.series:
        values = known(series.values)
        if values:
            ends = [number(v, percent=view.percent) for v in (min(values), max(values))]
            parts.append(f"{plain(series.name)} from {ends[0]} to {ends[1]}")
    unit = " percent" if view.percent else ""
    how = "Stacked bars" if view.stacked else "Bars"
    return f"{plain(view.title)}. {how} by {plain(view.x_label)}: {'; '.join(parts)}{unit}."
