"""What a report shows, as data: a page of answers and sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from microtome.papers.comparison import Reported
from microtome.views import Step, View

Status = Literal["done", "failed", "left out", "not run yet"]


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
    """A whole report: ``answers`` are its first sentences, ``steps`` say what to do next.

    ``notes`` are what a reader must know of the data: rows left out, labels matched by position.
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
