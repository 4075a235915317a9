"""The drawing of a curve: lines with their intervals, controls dashed, levels dotted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from microtome.report.axes import (
    BOTTOM,
    LEFT,
    RIGHT,
    Scale,
    known,
    legend,
    nice_ticks,
    place_name,
    plot_height,
    value_axis,
    value_name,
    value_scale,
)
from microtome.report.drawing import Drawing, Label, Mark, Outline, Style, marker
from microtome.report.palette import N_SERIES
from microtome.report.text import between, is_number, number, plain, shortened
from microtome.views import Curve, Series, ends_at

MOST_BANDS = 4  # ribbons in one picture; with more, intervals are thin lines
CLOSE = 0.012  # of the range: lines nearer than this are one line to the eye
SAME_COLOUR = "baseline of the line in this colour"


def draw_curve(view: Curve, style: Style) -> Drawing:
    """A curve in a box of the style's width."""
    names, top = curve_legend([view], style)
    marks, height = plot_curve(view, style, like=[view], top=top)
    return Drawing(style.width, height, (*names, *marks), curve_summary(view))


def plot_curve(
    view: Curve, style: Style, *, like: Sequence[Curve], top: float
) -> tuple[list[Mark], float]:
    """A curve without a legend, from ``top`` on, and where it ends.

    Its pens and its y axis are those of the curves ``like`` it.
    """
    top, width = top + 34, style.width  # the name of the y axis
    height = top + plot_height(style) + BOTTOM
    pens, dashed = _pens(like), _dashed(like, style)
    x = _x_scale(view, width)
    y = value_scale(
        known(v for each in like for line in each.series for v in line.y)
        + [level.y for each in like for level in each.levels],
        known(v for each in like for line in each.series for v in (*line.low, *line.high)),
        top,
        height - BOTTOM,
        percent=view.percent,
    )
    unit = value_name(view.y_label, percent=view.percent)
    marks: list[Mark] = [Label(4, top - 16, shortened(unit, width - 8, 12), "name")]
    marks += [*_axes(x, y, view, height), *_divider(view, x, y), *_levels(view, pens, x, y)]
    banded = [series for series in view.series if known(series.low) and known(series.high)]
    for k, series in enumerate(banded):
        at = _Look(pens[series.name], series.name in dashed)
        if len(banded) <= MOST_BANDS:
            marks += _band(series, at, x, y)
        else:  # ribbons would hide each other
            aside = (k - (len(banded) - 1) / 2) * 2.4
            marks += _whiskers(series, at, x, y, aside)
    for series in view.series:
        marks += _line(series, _Look(pens[series.name], series.name in dashed), x, y)
    for series in view.series:
        marks += _dots(series, _Look(pens[series.name], series.name in dashed), x, y, view)
    return marks, height


@dataclass(frozen=True)
class _Look:
    """The number of a line's colour and marker, and whether it is dashed to be told apart."""

    i: int
    is_dashed: bool

    def pen(self, series: Series) -> str:
        kind = "control" if series.is_control else "dash" if self.is_dashed else "line"
        return f"{kind}{self.i % N_SERIES}"

    @property
    def radius(self) -> float:
        """Of its markers: one below stays in sight."""
        return 2.6 if self.is_dashed else 3.6


def _dashed(curves: Sequence[Curve], style: Style) -> set[str]:
    """The lines to dash: on paper all but the first, else those that lie on an earlier one."""
    names = list(_pens(curves))
    if style.is_paper:
        return set(names[1:])
    return {
        later.name
        for curve in curves
        for i, later in enumerate(curve.series)
        if any(_coincide(earlier, later, curves) for earlier in curve.series[:i])
    }


def _coincide(a: Series, b: Series, curves: Sequence[Curve]) -> bool:
    """Whether two lines can't be told apart at half of the places that both have."""
    every = known(v for curve in curves for line in curve.series for v in line.y)
    if a.is_control or b.is_control or not every:
        return False
    room = CLOSE * ((max(every) - min(every)) or 1.0)
    of_a = {x: v for x, v in zip(a.x, a.y, strict=True) if is_number(v)}
    gaps = [
        abs(of_a[x] - v)  # type: ignore[operator]
        for x, v in zip(b.x, b.y, strict=True)
        if x in of_a and is_number(v)
    ]
    n_close = sum(gap <= room for gap in gaps)
    return len(gaps) > 1 and 2 * n_close >= len(gaps)


def _pens(curves: Sequence[Curve]) -> dict[str, int]:
    """The number of each line's colour and marker, the same in all of the curves."""
    names = dict.fromkeys(line.name for curve in curves for line in curve.series)
    return {name: i for i, name in enumerate(names)}


def curve_legend(curves: Sequence[Curve], style: Style) -> tuple[list[Mark], float]:
    """The names of the lines of all curves, and the height that they take."""
    lines = {line.name: line for curve in reversed(curves) for line in curve.series}
    entries: list[tuple[str, Sequence[Mark]]] = []
    dashed = _dashed(curves, style)
    for name, i in _pens(curves).items():
        look = _Look(i, name in dashed)
        stroke = Outline(((0, 0), (26, 0)), look.pen(lines[name]))
        dot = marker(i, 13, 0, look.radius + 0.4, f"dot{i % N_SERIES}")
        entries.append((name, (stroke, dot)))
    dotted = (Outline(((0, 0), (26, 0)), "level"),)
    levels = dict.fromkeys(level.name for curve in curves for level in curve.levels)
    entries += [(name, dotted) for name in levels if name not in lines]
    if any(name in lines for name in levels):
        entries.append((SAME_COLOUR, dotted))
    return legend(entries, style.width)


def _levels(view: Curve, pens: Mapping[str, int], x: Scale, y: Scale) -> Iterator[Mark]:
    """Dotted lines over the whole width."""
    for level in view.levels:
        pen = f"level{pens[level.name] % N_SERIES}" if level.name in pens else "level"
        text = number(level.y, percent=view.percent) + (" %" if view.percent else "")
        ends = ((LEFT, y.inside(level.y)), (x.end + 8, y.inside(level.y)))
        yield Outline(ends, pen, hint=f"{plain(level.name)}: {text}")


def _divider(view: Curve, x: Scale, y: Scale) -> Iterator[Mark]:
    """A vertical line, its label on the side that has more room."""
    if view.divider is None:
        return
    at = x(view.divider)
    yield Outline(((at, y.start), (at, y.end - 6)), "divider")
    on_left = at - LEFT > x.end - at
    room = (at - LEFT if on_left else x.end - at) - 4
    label = shortened(plain(view.divider_label), room, 12)
    yield Label(
        at - 4 if on_left else at + 4, y.end - 1, label, anchor="end" if on_left else "start"
    )


def curve_summary(view: Curve) -> str:
    """What a curve shows, in words."""
    parts = []
    for series in view.series:
        values = known(series.y)
        if values:
            ends = [number(v, percent=view.percent) for v in (min(values), max(values))]
            parts.append(f"{plain(series.name)} from {ends[0]} to {ends[1]}")
    unit = " percent" if view.percent else ""
    return f"{plain(view.title)}. Curve over {plain(view.x_label)}: {'; '.join(parts)}{unit}."


def _x_scale(view: Curve, width: float) -> Scale:
    values = known(x for line in view.series for x in line.x) or [0.0, 1.0]
    low, high = min(values), max(values)
    if view.divider is not None:
        low, high = min(low, view.divider), max(high, view.divider)
    if low == high:
        low, high = low - 0.5, high + 0.5
    elif all(len(line.x) < 2 for line in view.series):  # points by themselves keep off the axis
        pad = 0.05 * (high - low)
        low, high = low - pad, high + pad
    room = width - LEFT - RIGHT
    if all(v.is_integer() for v in values) and min(values) != max(values):
        step = max(1, math.ceil((high - low) / (room / 30)))
        ticks = tuple(float(v) for v in range(math.ceil(low), int(high) + 1, step))
    else:
        ticks = tuple(t for t in nice_ticks(low, high, max(3, int(room / 70))) if low <= t <= high)
    return Scale(low, high, LEFT + 6, width - RIGHT, ticks)


def _axes(x: Scale, y: Scale, view: Curve, height: float) -> Iterator[Mark]:
    bottom = height - BOTTOM
    yield from value_axis(y, x.end + 8, percent=view.percent)
    yield Outline(((LEFT, bottom), (x.end + 8, bottom)), "axis")
    for tick in x.ticks:
        yield Outline(((x(tick), bottom), (x(tick), bottom + 4)), "axis")
        yield Label(x(tick), bottom + 18, f"{tick:g}".replace("-", "−"), anchor="middle")
    yield from place_name(plain(view.x_label), LEFT, x.end, height - 8)


def _runs(series: Series) -> Iterator[list[int]]:
    """The indices of unbroken stretches: a missing value breaks the line."""
    run: list[int] = []
    for i, value in enumerate(series.y):
        if is_number(value):
            run.append(i)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _whiskers(series: Series, look: _Look, x: Scale, y: Scale, aside: float) -> Iterator[Mark]:
    """The intervals as thin lines, a little aside so that those of all lines are seen."""
    for at, low, high in zip(series.x, series.low, series.high, strict=False):
        if low is not None and high is not None and is_number(low) and is_number(high):
            place = x(at) + aside
            ends = ((place, y.inside(low)), (place, y.inside(high)))
            yield Outline(ends, f"error{look.i % N_SERIES}")


def _band(series: Series, look: _Look, x: Scale, y: Scale) -> Iterator[Mark]:
    n = min(len(series.low), len(series.high), len(series.x))
    for run in _runs(series):
        ends = [
            (series.x[k], series.low[k], series.high[k])
            for k in run
            if k < n and is_number(series.low[k]) and is_number(series.high[k])
        ]
        if len(ends) == 1:  # a line, where a band would have no width
            ((at, low, high),) = ends
            whisker = ((x(at), y.inside(low)), (x(at), y.inside(high)))  # type: ignore[arg-type]
            yield Outline(whisker, look.pen(series))
        if len(ends) > 1:
            upper = [(x(at), y.inside(high)) for at, _, high in ends]  # type: ignore[arg-type]
            lower = [(x(at), y.inside(low)) for at, low, _ in reversed(ends)]  # type: ignore[arg-type]
            yield Outline((*upper, *lower), f"band{look.i % N_SERIES}", closed=True)


def _line(series: Series, look: _Look, x: Scale, y: Scale) -> Iterator[Mark]:
    for run in _runs(series):
        points = tuple((x(series.x[k]), y(series.y[k])) for k in run)  # type: ignore[arg-type]
        if len(points) > 1:
            yield Outline(points, look.pen(series))


def _dots(series: Series, look: _Look, x: Scale, y: Scale, view: Curve) -> Iterator[Mark]:
    for run in _runs(series):
        for k in run:
            value, pen = series.y[k], f"dot{look.i % N_SERIES}"
            assert value is not None
            hint = _hint(series, k, value, view)
            yield marker(look.i, x(series.x[k]), y(value), look.radius, pen, hint)


def _hint(series: Series, k: int, value: float, view: Curve) -> str:
    """The row behind a point: what it is of, its value and its interval."""
    note = f"{plain(series.notes[k])}, " if k < len(series.notes) else ""
    text = number(value, percent=view.percent) + (" %" if view.percent else "")
    hint = f"{note}{plain(series.name)}, {plain(view.x_label)} {series.x[k]:.4g}: {text}"
    low, high = ends_at(series, k)
    if low is None or high is None:
        return hint
    return f"{hint} ({between(low, high, percent=view.percent)})"
