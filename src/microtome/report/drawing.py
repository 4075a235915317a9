"""A figure as marks in pixels, before it becomes SVG or PDF: one layout, two ways to write it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

PIXELS_PER_INCH = 96
Point = tuple[float, float]
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True)
class Outline:
    """A line through points, or the area they enclose."""

    points: tuple[Point, ...]
    pen: str
    closed: bool = False
    hint: str = ""  # shown on hover


@dataclass(frozen=True)
class Circle:
    """A round marker."""

    x: float
    y: float
    radius: float
    pen: str
    hint: str = ""


@dataclass(frozen=True)
class Label:
    """One line of text; ``y`` is its base line."""

    x: float
    y: float
    text: str
    pen: str = "label"
    anchor: Anchor = "start"


Mark = Outline | Circle | Label


@dataclass(frozen=True)
class Drawing:
    """A figure. ``summary`` says in words what is drawn, for those who don't see it."""

    width: float
    height: float
    marks: tuple[Mark, ...]
    summary: str


@dataclass(frozen=True)
class Style:
    """How the files of figures are drawn; the page has its own two widths.

    On ``paper`` a figure is exactly as wide as it may be, and lines differ in their dashes too.
    """

    width: float = 800.0
    is_paper: bool = False


SCREEN = Style()


def paper(inches: float = 3.3) -> Style:
    """For a column of print, 3.3 inches unless given: text is from 7 to 9 points there."""
    return Style(inches * PIXELS_PER_INCH, is_paper=True)


def box(x: float, y: float, width: float, height: float, pen: str, hint: str = "") -> Outline:
    """A rectangle."""
    corners = ((x, y), (x + width, y), (x + width, y + height), (x, y + height))
    return Outline(corners, pen, closed=True, hint=hint)


def moved(mark: Mark, dx: float, dy: float) -> Mark:
    """The mark in another place."""
    if isinstance(mark, Outline):
        return replace(mark, points=tuple((x + dx, y + dy) for x, y in mark.points))
    return replace(mark, x=mark.x + dx, y=mark.y + dy)


def marker(kind: int, x: float, y: float, radius: float, pen: str, hint: str = "") -> Mark:
    """The marker of the n-th series: they differ in shape, not in colour alone."""
    if kind % 4 == 0:
        return Circle(x, y, radius, pen, hint)
    near, r = radius, 1.2 * radius
    corners = {
        1: ((x - near, y - near), (x + near, y - near), (x + near, y + near), (x - near, y + near)),
        2: ((x, y - r), (x + r, y + 0.8 * r), (x - r, y + 0.8 * r)),
        3: ((x, y - r), (x + r, y), (x, y + r), (x - r, y)),
    }[kind % 4]  # fmt: skip
    return Outline(corners, pen, closed=True, hint=hint)
