"""Gold annotation: sentences with their tree, their frames, and what their pronouns stand for.

The embedded tasks ship with it; ``microtome.tasks.reading.embedded`` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

from microtome.tasks.annotation.treebanks import Sentence
from microtome.tasks.task import Label


@dataclass(frozen=True, slots=True)
class Element:
    """Words start..stop-1 that fill an element of a frame."""

    name: str
    start: int
    stop: int
    core: bool = True


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame's name, its predicate (the index of a word) and its core elements."""

    name: str
    target: int
    elements: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Annotated:
    """A sentence with its tree, its frames, and its pronouns with the nouns they stand for."""

    sentence: Sentence
    frames: tuple[Frame, ...]
    pronouns: tuple[tuple[int, int], ...]  # (pronoun, noun), indexes of words

    @property
    def text(self) -> str:
        """The sentence as it is written."""
        return self.sentence.text


@dataclass(frozen=True, slots=True)
class GoldRow:
    """A row of an embedded task with the annotated sentences of its text and of its pair.

    ``structure`` is the pattern that the row was made by; rows of one ``cluster`` have nearly the
    same words and different labels.
    """

    id: str
    cluster: str
    structure: str
    text: str
    pair: str | None
    label: Label
    first: tuple[Annotated, ...]
    second: tuple[Annotated, ...] = ()

    @property
    def sentences(self) -> tuple[Annotated, ...]:
        """The sentences of both texts."""
        return self.first + self.second
