"""What a task's structures produce, and the words that describe a structure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from micro.grammar.draw import Draw
from microtome.tasks.annotation.gold import Annotated
from microtome.tasks.task import Label

DOCUMENT = "document "
"""How the ids of the documents of retrieval begin."""


@dataclass(frozen=True, slots=True)
class Example:
    """One row before it has a place in a split: its annotated sentences, and the label.

    A document, which questions search, has none.
    """

    first: tuple[Annotated, ...]
    label: Label
    second: tuple[Annotated, ...] = ()

    @property
    def text(self) -> str:
        """The first text of the row."""
        return " ".join(part.text for part in self.first)

    @property
    def pair(self) -> str | None:
        """The second text of the row, if the task has pairs."""
        return " ".join(part.text for part in self.second) if self.second else None


@dataclass(frozen=True, slots=True)
class Structure:
    """A way to build a minimal set: rows with (nearly) the same words and different labels."""

    name: str
    build: Callable[[Draw], list[Example]]
    held_out: bool = False
    weight: int = 1
