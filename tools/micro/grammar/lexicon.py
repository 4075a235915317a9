"""The lexicon: our own tables, read into values that know what they go with.

Every seventh word of a table line is *held out*: it occurs in dev and test text only. A word one of
whose forms is also a form of another word is never held out, so that the promise can be checked
on the text itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import TypeVar

from micro.grammar import inflection

HELD_OUT_EVERY = 7


@dataclass(frozen=True, slots=True)
class Noun:
    """A common noun: ``kind`` is its semantic class ("food.fruit"), ``hypernym`` a wider noun."""

    lemma: str
    plural: str
    kind: str
    domain: str
    hypernym: str | None = None
    mass: bool = False
    gender: str | None = None
    held_out: bool = False

    @property
    def forms(self) -> tuple[str, ...]:
        """Every written form."""
        return (self.lemma,) if self.mass else (self.lemma, self.plural)


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb with one frame: who may do it (``subjects``) to what (``objects``)."""

    lemma: str
    past: str
    participle: str
    ing: str
    kind: str
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    frame: str
    elements: tuple[str, ...]
    domain: str
    held_out: bool = False

    @property
    def forms(self) -> tuple[str, ...]:
        """Every written form."""
        third = inflection.third_person(self.lemma)
        return (self.lemma, third, self.past, self.participle, self.ing)


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective: ``polarity`` +1, −1 or 0, and the noun classes that it describes.

    ``strength`` is "extreme" (absolutely superb), "mild" (somewhat noisy) or "plain".
    """

    lemma: str
    polarity: int
    kinds: tuple[str, ...]
    strength: str = "plain"
    held_out: bool = False

    @property
    def forms(self) -> tuple[str, ...]:
        """Every written form."""
        return (self.lemma,)


@dataclass(frozen=True, slots=True)
class SmallWord:
    """A name, an adverb, a weekday…: ``kind`` is the table's word for it."""

    lemma: str
    kind: str
    gender: str | None = None
    held_out: bool = False

    @property
    def forms(self) -> tuple[str, ...]:
        """Every written form."""
        return (self.lemma,)


_E = TypeVar("_E", Noun, Verb, Adjective, SmallWord)
Entry = Noun | Verb | Adjective | SmallWord


@dataclass(frozen=True)
class Lexicon:
    """All entries, and the relations between words."""

    nouns: tuple[Noun, ...]
    verbs: tuple[Verb, ...]
    adjectives: tuple[Adjective, ...]
    small_words: tuple[SmallWord, ...]
    synonyms: dict[str, str] = field(default_factory=dict)
    opposites: dict[str, str] = field(default_factory=dict)

    def noun(self, lemma: str) -> Noun:
        """The first noun with this lemma."""
        return next(noun for noun in self.nouns if noun.lemma == lemma)

    def hypernym(self, noun: Noun) -> Noun | None:
        """The next wider noun."""
        return self.noun(noun.hypernym) if noun.hypernym else None

    def is_a(self, noun: Noun, wider: Noun) -> bool:
        """Whether every ``noun`` is a ``wider``."""
        step: Noun | None = noun
        while step is not None:
            if step.lemma == wider.lemma:
                return True
            step = self.hypernym(step)
        return False

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every entry of every class."""
        return (*self.nouns, *self.verbs, *self.adjectives, *self.small_words)

    def held_out_forms(self) -> frozenset[str]:
        """Lower-case forms that don't occur in any training text."""
        return frozenset(form for entry in self.entries if entry.held_out for form in entry.forms)


def goes_with(kind: str, wanted: tuple[str, ...]) -> bool:
    """Whether a semantic class is one of ``wanted``, or below one: food.fruit is a food."""
    return any(want == "any" or kind == want or kind.startswith(want + ".") for want in wanted)


@cache
def load() -> Lexicon:
    """The lexicon of the package."""
    relations = dict(_relations("relations.txt"))
    lexicon = Lexicon(
        tuple(_nouns()), tuple(_verbs()), tuple(_adjectives()), tuple(_small_words()), **relations
    )
    return _with_clean_holdout(lexicon)


def _with_clean_holdout(lexicon: Lexicon) -> Lexicon:
    """Hold out a word in all of its entries, or (where another word shares a form) in none."""
    held = {(type(e), e.lemma) for e in lexicon.entries if e.held_out}
    shared = {f for e in lexicon.entries if (type(e), e.lemma) not in held for f in e.forms}
    shared |= {word for pair in lexicon.synonyms.items() for word in pair}
    shared |= {word for pair in lexicon.opposites.items() for word in pair}
    clashing = {(type(e), e.lemma) for e in lexicon.entries if not shared.isdisjoint(e.forms)}
    held -= clashing

    def mark(entries: tuple[_E, ...]) -> tuple[_E, ...]:
        return tuple(replace(e, held_out=(type(e), e.lemma) in held) for e in entries)

    return replace(
        lexicon,
        nouns=mark(lexicon.nouns),
        verbs=mark(lexicon.verbs),
        adjectives=mark(lexicon.adjectives),
        small_words=mark(lexicon.small_words),
    )


def _lines(name: str) -> Iterator[tuple[list[str], list[tuple[str, bool]]]]:
    """(fields before the colon, [(word, held out)]) of every line of a table."""
    text = (files(__package__) / "tables" / name).read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            head, _, words = line.partition(" : ")
            fields = [part.strip() for part in head.split("|")]
            marked = enumerate(words.split(), start=1)
            yield fields, [(word, place % HELD_OUT_EVERY == 0) for place, word in marked]


def _nouns() -> Iterator[Noun]:
    for (kind, domain, hypernym), words in _lines("nouns.txt"):
        for item, held_out in words:
            item, _, gender = item.partition("^")
            item, _, irregular = item.partition("=")
            lemma = item.removesuffix("~")
            yield Noun(
                lemma,
                irregular or inflection.plural(lemma),
                kind,
                domain,
                None if hypernym == "-" else hypernym,
                mass=item.endswith("~"),
                gender=gender or None,
                held_out=held_out,
            )


def _verbs() -> Iterator[Verb]:
    for (kind, subject, object_, frame, domain), words in _lines("verbs.txt"):
        name, *elements = frame.split()
        for item, held_out in words:
            lemma, *forms = item.split("/")
            past = forms[0] if forms else inflection.past(lemma)
            yield Verb(
                lemma,
                past,
                forms[1] if len(forms) > 1 else past,
                forms[2] if len(forms) > 2 else inflection.present_participle(lemma),
                kind,
                tuple(subject.split()),
                tuple(object_.split()),
                name,
                tuple(elements),
                domain,
                held_out,
            )


def _adjectives() -> Iterator[Adjective]:
    polarities = {"+": 1, "-": -1, "0": 0}
    strengths = {"!": "extreme", "'": "mild"}
    for (sign, kinds), words in _lines("adjectives.txt"):
        for item, held_out in words:
            strength = strengths.get(item[-1], "plain")
            lemma = item.rstrip("!'")
            yield Adjective(lemma, polarities[sign], tuple(kinds.split()), strength, held_out)


def _small_words() -> Iterator[SmallWord]:
    for (kind,), words in _lines("small_words.txt"):
        kind, _, gender = kind.partition("^")
        for lemma, held_out in words:
            yield SmallWord(lemma, kind, gender or None, held_out)


def _relations(name: str) -> Iterator[tuple[str, dict[str, str]]]:
    for (kind,), words in _lines(name):
        pairs = [tuple(word.split("=")) for word, _ in words]
        yield kind, {a: b for pair in pairs for a, b in (pair, pair[::-1])}
