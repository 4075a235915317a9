"""The drawing of a curve: lines with their intervals, controls dashed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from microtome.report.drawing import Drawing, Label, Mark, Outline, marker
from microtome.report.palette import N_SERIES
from microtome.report.text import is_number, number, plain, shortened, width_of
from microtome.views import Curve, Series

LEFT, RIGHT, BOTTOM = 48, 18, 46
LINE = 20  # height of a line of the legend


@dataclass(frozen=True)
class Scale:
    """From values to pixels along one axis."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def inside(self, value: float) -> float:
        """The pixel of a value; beyond the axis, that of its end."""
        return self(min(max(value, self.low), self.high))


def draw_curve(view: Curve, *, width: float) -> Drawing:
    """A curve in a box of this width."""
    legend, top = _legend(view.series, width)
    top += 34  # the name of the y axis
    height = top + min(300.0, max(190.0, 0.42 * width)) + BOTTOM
    x = _x_scale(view.series, width)
    y = _y_scale(view, top, height - BOTTOM)
    unit = f"{plain(view.y_label)} (%)" if view.percent else plain(view.y_label)
    marks: list[Mark] = [*legend, Label(4, top - 16, shortened(unit, width - 8, 12), "name")]
    marks += _axes(x, y, view, top, height)
    for i, series in enumerate(view.series):
        marks += _band(series, i, x, y)
    for i, series in enumerate(view.series):
        marks += _line(series, i, x, y)
    for i, series in enumerate(view.series):
        marks += _dots(series, i, x, y, view)
    return Drawing(width, height, tuple(marks), _summary(view))


def _summary(view: Curve) -> str:
    parts = []
    for series in view.series:
        known = [v for v in series.y if is_number(v)]
        if known:
            ends = [number(v, percent=view.percent) for v in (min(known), max(known))]  # type: ignore[type-var, arg-type]
            parts.append(f"{plain(series.name)} from {ends[0]} to {ends[1]}")
    unit = " percent" if view.percent else ""
    return f"{plain(view.title)}. Curve over {plain(view.x_label)}: {'; '.join(parts)}{unit}."


def _legend(series: Sequence[Series], width: float) -> tuple[list[Mark], float]:
    """The names of the lines, in as many rows as they need, and the height they take."""
    marks: list[Mark] = []
    x, y = 4.0, 14.0
    for i, line in enumerate(series):
        name = shortened(plain(line.name), width - 48, 12)
        taken = 34 + width_of(name, 12) + 18
        if x > 4 and x + taken - 18 > width:
            x, y = 4.0, y + LINE
        marks.append(Outline(((x, y - 4), (x + 26, y - 4)), _pen(line, i)))
        marks.append(marker(i, x + 13, y - 4, 4, f"dot{i % N_SERIES}"))
        marks.append(Label(x + 34, y, name, "name"))
        x += taken
    return marks, y + 8 if series else 4.0


def _pen(series: Series, i: int) -> str:
    return f"{'control' if series.is_control else 'line'}{i % N_SERIES}"


def _x_scale(series: Sequence[Series], width: float) -> Scale:
    values = [x for line in series for x in line.x if is_number(x)] or [0.0, 1.0]
    low, high = min(values), max(values)
    if low == high:
        low, high = low - 0.5, high + 0.5
    room = width - LEFT - RIGHT
    if all(float(v).is_integer() for v in values) and min(values) != max(values):
        step = max(1, math.ceil((high - low) / (room / 30)))
        ticks = tuple(float(v) for v in range(int(low), int(high) + 1, step))
    else:
        ticks = tuple(t for t in nice_ticks(low, high, int(room / 70)) if low <= t <= high)
    return Scale(low, high, LEFT + 6, width - RIGHT, ticks)


def _y_scale(view: Curve, top: float, bottom: float) -> Scale:
    values = [
        float(v)
        for line in view.series
        for column in (line.y, line.low, line.high)
        for v in column
        if v is not None and is_number(v)
    ] or [0.0, 1.0]
    low, high = min(values), max(values)
    drawn = [float(v) for line in view.series for v in line.y if v is not None and is_number(v)]
    if view.percent and drawn and min(drawn) >= 0 and max(drawn) <= 1:
        low, high = max(low, 0.0), min(high, 1.0)  # a share can't be outside, whatever its interval
        if high - low > 0.4:
            low, high = 0.0, 1.0  # a share that moves this much is read on the whole scale
    ticks = nice_ticks(low, high, 5)
    return Scale(ticks[0], ticks[-1], bottom, top, ticks)


def nice_ticks(low: float, high: float, n: int) -> tuple[float, ...]:
    """Round numbers that enclose the range: steps of 1, 2 or 5 times a power of ten."""
    if high <= low:
        pad = abs(low) * 0.05 or 0.5
        low, high = low - pad, high + pad
    rough = (high - low) / max(n, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(k * step, 12) for k in range(first, last + 1))


def _axes(x: Scale, y: Scale, view: Curve, top: float, height: float) -> Iterator[Mark]:
    bottom = height - BOTTOM
    step = y.ticks[1] - y.ticks[0]
    factor = 100 if view.percent else 1
    decimals = max(0, -math.floor(math.log10(step * factor) + 1e-9))
    for tick in y.ticks:
        yield Outline(((LEFT, y(tick)), (x.end + 8, y(tick))), "grid")
        text = f"{factor * tick:.{decimals}f}".replace("-", "−")
        yield Label(LEFT - 8, y(tick) + 4, text, anchor="end")
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
