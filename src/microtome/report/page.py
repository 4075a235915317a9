"""What a report shows, as data: a page of answers and sections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from microtome.papers.comparison import Reported
from microtome.views import Bars, Curve, Headline, HeatMap, Panels, Step, View

Status = Literal["done", "failed", "left out", "not run yet"]
Picture = Curve | HeatMap | Bars | Panels


@dataclass(frozen=True)
class Section:
    """One experiment: the question, what was seen, what it means, how it was done."""

    name: str
    question: str
    source: str  # the paper's section
    status: Status
    finding: str
    views: tuple[View, ...] = ()
    method: str = ""
    reported: tuple[Reported, ...] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    problem: str = ""  # why it failed


@dataclass(frozen=True)
class Page:
    """A whole report: ``headline`` and ``picture`` are its front, ``answers`` the findings of all.

    ``front`` are views that don't belong to a section alone, ``steps`` say what to do next.
    ``notes`` are what a reader must know of the data: rows left out, labels matched by position.
    Without a headline the first answer's first sentence is in its place.
    """

    title: str
    model: str
    task: str
    answers: tuple[str, ...]
    sections: tuple[Section, ...]
    front: tuple[View, ...] = ()
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)  # versions, machine, seeds, command
    headline: Headline | None = None
    picture: Picture | None = None


def first_picture(views: Iterable[View]) -> Picture | None:
    """The first of some views that is drawn; None where none is."""
    return next((view for view in views if isinstance(view, Picture)), None)
