"""Small drawings in a table's rows: a change with its interval, against no change."""

from __future__ import annotations

from microtome.report.drawing import Circle, Drawing, Label, Mark, Outline
from microtome.report.text import is_number, number
from microtome.views import Table

ESTIMATES = ("change", "delta", "gain")
WIDTH, HEIGHT, EDGE = 112.0, 20.0, 6.0

Interval = tuple[float, float, float]


def intervals_of(table: Table) -> list[Interval | None]:
    """Estimate, low and high of every row; nothing where the table has no such columns."""
    places = [table.columns.index(name) for name in change_columns(table)]
    return [_interval([row[i] for i in places]) for row in table.rows] if places else []


def change_columns(table: Table) -> tuple[str, ...]:
    """The columns of a change and of its interval's ends; none where the table has no such three.

    Where a table has intervals of other figures too, those of the change carry its name.
    """
    for name in ESTIMATES:
        for ends in ((f"{name}_low", f"{name}_high"), ("low", "high")):
            if {name, *ends} <= set(table.columns):
                return (name, *ends)
    return ()


def _interval(cells: list[object]) -> Interval | None:
    numbers = [float(c) for c in cells if isinstance(c, (int, float)) and is_number(c)]
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else None


def draw_intervals(table: Table) -> list[Drawing]:
    """The scale, then a drawing for every row; none where there is nothing to draw."""
    intervals = intervals_of(table)
    known = [end for interval in intervals if interval for end in interval]
    if not known:
        return []
    low, high = min(*known, 0.0), max(*known, 0.0)
    span = (high - low) or 1.0

    def x(value: float) -> float:
        return EDGE + (value - low) / span * (WIDTH - 2 * EDGE)

    zero = Outline(((x(0), 0), (x(0), HEIGHT)), "axis")
    percent = any(name in table.percent for name in ESTIMATES)
    scale = [Label(min(max(x(0), 6.0), WIDTH - 6), 13, "0", anchor="middle")]
    for value, anchor in ((low, "start"), (high, "end")):
        if abs(x(value) - x(0)) > 36:
            place = 0.0 if anchor == "start" else WIDTH
            text = number(value, percent=percent, plus=True)
            scale.append(Label(place, 13, text, anchor="start" if anchor == "start" else "end"))
    drawings = [Drawing(WIDTH, HEIGHT, tuple(scale), "scale of the intervals")]
    for interval in intervals:
        marks: list[Mark] = [zero]
        summary = "no interval"
        if interval is not None:
            ends = [number(v, percent=percent, plus=True) for v in interval]
            summary = f"{ends[0]} ({ends[1]} to {ends[2]})"
            middle = HEIGHT / 2
            value, low_end, high_end = map(x, interval)
            marks.append(Outline(((low_end, middle), (high_end, middle)), "line0", hint=summary))
            marks.append(Circle(value, middle, 4, "dot0", summary))
        drawings.append(Drawing(WIDTH, HEIGHT, tuple(marks), summary))
    return drawings
