"""The drawing of a curve: lines with their intervals, controls dashed, levels dotted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from microtome.report.axes import (
    BOTTOM,
    LEFT,
    RIGHT,
    Scale,
    known,
    legend,
    nice_ticks,
    value_axis,
    value_name,
    value_scale,
)
from microtome.report.drawing import Drawing, Label, Mark, Outline, marker
from microtome.report.palette import N_SERIES
from microtome.report.text import is_number, number, plain, shortened
from microtome.views import Curve, Series

SAME_COLOUR = "baseline of the line in this colour"


def draw_curve(view: Curve, *, width: float) -> Drawing:
    """A curve in a box of this width."""
    names, top = curve_legend([view], width)
    marks, height = plot_curve(view, width, like=[view], top=top)
    return Drawing(width, height, (*names, *marks), curve_summary(view))


def plot_curve(
    view: Curve, width: float, *, like: Sequence[Curve], top: float
) -> tuple[list[Mark], float]:
    """A curve without a legend, from ``top`` on, and where it ends.

    Its pens and its y axis are those of the curves ``like`` it.
    """
    top += 34  # the name of the y axis
    height = top + min(300.0, max(190.0, 0.42 * width)) + BOTTOM
    pens = _pens(like)
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
    for series in view.series:
        marks += _band(series, pens[series.name], x, y)
    for series in view.series:
        marks += _line(series, pens[series.name], x, y)
    for series in view.series:
        marks += _dots(series, pens[series.name], x, y, view)
    return marks, height


def _pens(curves: Sequence[Curve]) -> dict[str, int]:
    """The number of each line's colour and marker, the same in all of the curves."""
    names = dict.fromkeys(line.name for curve in curves for line in curve.series)
    return {name: i for i, name in enumerate(names)}


def curve_legend(curves: Sequence[Curve], width: float) -> tuple[list[Mark], float]:
    """The names of the lines of all curves, and the height that they take."""
    lines = {line.name: line for curve in reversed(curves) for line in curve.series}
    entries: list[tuple[str, Sequence[Mark]]] = []
    for name, i in _pens(curves).items():
        stroke = Outline(((0, 0), (26, 0)), _pen(lines[name], i))
        entries.append((name, (stroke, marker(i, 13, 0, 4, f"dot{i % N_SERIES}"))))
    dotted = (Outline(((0, 0), (26, 0)), "level"),)
    levels = dict.fromkeys(level.name for curve in curves for level in curve.levels)
    entries += [(name, dotted) for name in levels if name not in lines]
    if any(name in lines for name in levels):
        entries.append((SAME_COLOUR, dotted))
    return legend(entries, width)


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


def _pen(series: Series, i: int) -> str:
    return f"{'control' if series.is_control else 'line'}{i % N_SERIES}"


def _x_scale(view: Curve, width: float) -> Scale:
    values = known(x for line in view.series for x in line.x) or [0.0, 1.0]
    low, high = min(values), max(values)
    if view.divider is not None:
        low, high = min(low, view.divider), max(high, view.divider)
    if low == high:
        low, high = low - 0.5, high + 0.5
    room = width - LEFT - RIGHT
    if all(v.is_integer() for v in values) and min(values) != max(values):
        step = max(1, math.ceil((high - low) / (room / 30)))
        ticks = tuple(float(v) for v in range(math.ceil(low), int(high) + 1, step))
    else:
        ticks = tuple(t for t in nice_ticks(low, high, int(room / 70)) if low <= t <= high)
    return Scale(low, high, LEFT + 6, width - RIGHT, ticks)


def _axes(x: Scale, y: Scale, view: Curve, height: float) -> Iterator[Mark]:
    bottom = height - BOTTOM
    yield from value_axis(y, x.end + 8, percent=view.percent)
    yield Outline(((LEFT, bottom), (x.end + 8, bottom)), "axis")
    for tick in x.ticks:
        yield Outline(((x(tick), bottom), (x(tick), bottom + 4)), "axis")
        yield Label(x(tick), bottom + 18, f"{tick:g}".replace("-", "−"), anchor="middle")
    middle = (LEFT + x.end) / 2
    name = shortened(plain(view.x_label), x.end - LEFT, 12)
    yield Label(middle, height - 8, name, "name", anchor="middle")


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


def _band(series: Series, i: int, x: Scale, y: Scale) -> Iterator[Mark]:
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
            yield Outline(whisker, _pen(series, i))
        if len(ends) > 1:
            upper = [(x(at), y.inside(high)) for at, _, high in ends]  # type: ignore[arg-type]
            lower = [(x(at), y.inside(low)) for at, low, _ in reversed(ends)]  # type: ignore[arg-type]
            yield Outline((*upper, *lower), f"band{i % N_SERIES}", closed=True)


def _line(series: Series, i: int, x: Scale, y: Scale) -> Iterator[Mark]:
    for run in _runs(series):
        points = tuple((x(series.x[k]), y(series.y[k])) for k in run)  # type: ignore[arg-type]
        if len(points) > 1:
            yield Outline(points, _pen(series, i))


def _dots(series: Series, i: int, x: Scale, y: Scale, view: Curve) -> Iterator[Mark]:
    for run in _runs(series):
        for k in run:
            value = series.y[k]
            assert value is not None
            text = number(value, percent=view.percent) + (" %" if view.percent else "")
            hint = f"{plain(series.name)}, {plain(view.x_label)} {series.x[k]:g}: {text}"
            low = series.low[k] if k < len(series.low) else None
            high = series.high[k] if k < len(series.high) else None
            if low is not None and high is not None:
                ends = [number(v, percent=view.percent) for v in (low, high)]
                hint += f" ({ends[0]} to {ends[1]})"
            yield marker(i, x(series.x[k]), y(value), 3.6, f"dot{i % N_SERIES}", hint)
