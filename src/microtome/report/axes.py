"""The axes of a figure: round numbers, from values to pixels, and the names of lines and bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from microtome.report.drawing import Label, Mark, Outline, Style, moved
from microtome.report.text import is_number, plain, shortened, width_of

LEFT, RIGHT, BOTTOM = 48, 18, 46
LINE = 20  # height of a line of the legend
SAMPLE = 34  # width of what a legend shows before a name


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


def nice_ticks(low: float, high: float, n: int) -> tuple[float, ...]:
    """Round numbers that enclose the range: steps of 1, 2 or 5 times a power of ten."""
    if high - low < 1e-11:  # ticks are rounded to twelve decimals
        pad = abs(low) * 0.05 or 0.5
        low, high = low - pad, high + pad
    rough = (high - low) / max(n, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(k * step, 12) for k in range(first, last + 1))


def plot_height(style: Style) -> float:
    """The height of a plot, between its axes."""
    if style.is_paper:
        return min(260.0, max(110.0, 0.58 * style.width))
    return min(300.0, max(190.0, 0.42 * style.width))


def known(values: Iterable[float | None]) -> list[float]:
    """The values that were measured."""
    return [float(value) for value in values if value is not None and is_number(value)]


def value_scale(
    drawn: Sequence[float], ends: Sequence[float], top: float, bottom: float, *, percent: bool
) -> Scale:
    """The y axis of some values and the ends of their intervals."""
    everything = [*drawn, *ends] or [0.0, 1.0]
    low, high = min(everything), max(everything)
    if percent and drawn and min(drawn) >= 0 and max(drawn) <= 1:
        low, high = max(low, 0.0), min(high, 1.0)  # a share can't be outside, whatever its interval
        if high - low > 0.4:
            low, high = 0.0, 1.0  # a share that moves this much is read on the whole scale
    ticks = nice_ticks(low, high, 5)
    return Scale(ticks[0], ticks[-1], bottom, top, ticks)


def value_axis(y: Scale, right: float, *, percent: bool) -> Iterator[Mark]:
    """A grid line and a number at every tick of the y axis."""
    factor = 100 if percent else 1
    step = y.ticks[1] - y.ticks[0]
    decimals = max(0, -math.floor(math.log10(step * factor) + 1e-9))
    for tick in y.ticks:
        yield Outline(((LEFT, y(tick)), (right, y(tick))), "grid")
        text = f"{factor * tick:.{decimals}f}"
        if decimals > 4:  # wider than the room for it: 2.4e−4
            mantissa, power = f"{factor * tick:.1e}".split("e")
            text = f"{mantissa}e{int(power)}" if tick else "0"
        yield Label(LEFT - 8, y(tick) + 4, text.replace("-", "−"), anchor="end")


def place_name(text: str, left: float, right: float, y: float) -> Iterator[Mark]:
    """The name of the x axis in its middle; a long one reaches to the figure's left side."""
    name = shortened(text, right - 4, 12)
    if width_of(name, 12) > right - left:
        yield Label(right + 8, y, name, "name", anchor="end")
    else:
        yield Label((left + right) / 2, y, name, "name", anchor="middle")


def value_name(label: str, *, percent: bool) -> str:
    """The name of the y axis, a metric's in words, with its unit."""
    name = plain(label).replace("_", " ")
    return f"{name} (%)" if percent and "point" not in label else name


def legend(entries: Sequence[tuple[str, Sequence[Mark]]], width: float) -> tuple[list[Mark], float]:
    """Names after samples, in as many rows as they need, and the height that they take.

    A sample is drawn around the origin: 26 pixels wide from 0, its middle at height 0.
    """
    marks: list[Mark] = []
    x, y = 4.0, 14.0
    for text, sample in entries:
        name = shortened(plain(text), width - 48, 12)
        taken = SAMPLE + width_of(name, 12) + 18
        if x > 4 and x + taken - 18 > width:
            x, y = 4.0, y + LINE
        marks += [moved(mark, x, y - 4) for mark in sample]
        marks.append(Label(x + SAMPLE, y, name, "name"))
        x += taken
    return marks, y + 8 if entries else 4.0
