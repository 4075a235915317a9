"""Who does what to whom, read off a sentence's annotation: its frames and its tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from micro.grammar import lexicon
from microtome.tasks.annotation.gold import Annotated, Element, Frame
from microtome.tasks.annotation.treebanks import Word

ROLES = ("agent", "theme", "recipient")
"""The roles of a verb's frame elements, in the lexicon's order."""

_WITHIN = ("det", "amod", "nummod", "nmod:poss")
_ASKED = {"where": "place", "when": "time"}


@dataclass(frozen=True, slots=True)
class Deed:
    """A verb, whether it is denied, and the word that heads each role's phrase (an index)."""

    verb: str
    denied: bool
    heads: dict[str, int]


def deeds(annotated: Annotated) -> Iterator[Deed]:
    """Every verb of a sentence with its roles, place and time."""
    words = annotated.sentence.words
    for frame in annotated.frames:
        below = [i for i, word in enumerate(words) if word.head == frame.target + 1]
        heads = {
            _role(words[frame.target].lemma, frame, element): _filler(words, frame, below, element)
            for element in frame.elements
        }
        for place in below:
            if words[place].lemma in _ASKED:
                heads[_ASKED[words[place].lemma]] = place
            elif words[place].relation == "obl" and place not in heads.values():
                heads["time" if words[place].lemma.lower() in _times() else "place"] = place
        denied = any(words[place].lemma == "not" for place in below)
        yield Deed(words[frame.target].lemma, denied, heads)


def phrase(words: tuple[Word, ...], head: int) -> range:
    """The words of a noun phrase: the noun and what describes it before it."""
    start = head
    while start and words[start - 1].head == head + 1 and words[start - 1].relation in _WITHIN:
        start -= 1
    return range(start, head + 1)


def _role(verb: str, frame: Frame, element: Element) -> str:
    return ROLES[_elements()[verb, frame.name].index(element.name)]


def _filler(words: tuple[Word, ...], frame: Frame, below: list[int], element: Element) -> int:
    """The head of an element; for a relative pronoun, the noun that it stands for."""
    head = next(place for place in below if element.start <= place < element.stop)
    verb = words[frame.target]
    relative = verb.relation == "acl:relcl" and words[head].lemma in ("who", "that")
    return verb.head - 1 if relative else head


@cache
def _elements() -> dict[tuple[str, str], tuple[str, ...]]:
    # "Break" has two entries of one frame; what broke is what somebody breaks.
    verbs = sorted(lexicon.load().verbs, key=lambda verb: len(verb.elements))
    return {(verb.lemma, verb.frame): verb.elements for verb in verbs}


@cache
def _times() -> frozenset[str]:
    small = lexicon.load().small_words
    return frozenset(word.lemma for word in small if word.kind in ("weekday", "occasion"))
