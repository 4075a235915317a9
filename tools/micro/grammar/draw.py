"""Seeded choices from the lexicon that keep to a split's words."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar, cast

from micro.grammar.lexicon import (
    Adjective,
    Entry,
    Lexicon,
    Noun,
    SmallWord,
    Verb,
    goes_with,
)
from microtome.errors import RunError

_T = TypeVar("_T")
_E = TypeVar("_E", Noun, Verb, Adjective, SmallWord)

# Dev and test draw held-out words more often than their share of the lexicon.
HELD_OUT_WEIGHT = 2


class NoWordError(RunError):
    """The words drawn so far leave no word for the next place: draw again."""


class Draw:
    """A random stream over the words of one split.

    ``held_out`` False: training words only. Otherwise all words, the held-out ones favoured.
    """

    def __init__(self, lexicon: Lexicon, seed: str, *, held_out: bool) -> None:
        self.lexicon = lexicon
        self.held_out = held_out
        # A string seed is hashed by SHA-512 inside: stable over platforms and versions.
        self.random = random.Random(seed)
        self._pools: dict[Hashable, Sequence[Entry]] = {}

    def chance(self, share: float) -> bool:
        """True in this share of calls."""
        return self.random.random() < share

    def pick(self, options: Sequence[_T]) -> _T:
        """One of ``options``."""
        return options[self.random.randrange(len(options))]

    def entry(self, entries: Sequence[_E], fits: Callable[[_E], bool] = lambda e: True) -> _E:
        """One of the split's entries that fits."""
        allowed = [e for e in entries if self.allows(e) and fits(e)]
        if not allowed:
            raise NoWordError("no word of the lexicon fits the structure")
        weights = [HELD_OUT_WEIGHT if e.held_out else 1 for e in allowed]
        return self.random.choices(allowed, weights)[0]

    def allows(self, entry: Entry) -> bool:
        """Whether the split may use this word."""
        return self.held_out or not entry.held_out

    def noun(self, *kinds: str, domain: str | None = None, without: tuple[str, ...] = ()) -> Noun:
        """A noun of one of these classes, from ``domain`` or a neutral one if given."""
        domains = (domain, "any") if domain not in (None, "any") else None
        found = self._pool(self.lexicon.nouns, ("noun", kinds), lambda n: _is_filler(n, kinds))
        near = [n for n in found if domains and n.domain in domains]
        return self.entry(near if len(near) > 2 else found, lambda n: n.lemma not in without)

    def verb(self, *kinds: str, fits: Callable[[Verb], bool] = lambda v: True) -> Verb:
        """A verb of one of these kinds ("transitive", "liking"…)."""
        pool = self._pool(self.lexicon.verbs, ("verb", kinds), lambda v: v.kind in kinds)
        return self.entry(pool, fits)

    def name(self, gender: str | None = None, without: tuple[str, ...] = ()) -> SmallWord:
        """A first name."""
        pool = self._pool(self.lexicon.small_words, "name", lambda w: w.kind == "name")
        return self.entry(pool, lambda w: gender in (None, w.gender) and w.lemma not in without)

    def intensifier(self, adjective: Adjective) -> str:
        """What strengthens it: very, really; absolutely, simply for an extreme one."""
        return self.small("extreme" if adjective.strength == "extreme" else "strong")

    def small(self, kind: str) -> str:
        """An adverb, a weekday, an occasion."""
        pool = self._pool(self.lexicon.small_words, ("small", kind), lambda w: w.kind == kind)
        return self.entry(pool).lemma

    def adjective(
        self,
        noun: Noun,
        polarity: int = 0,
        *,
        without: tuple[str, ...] = (),
        strength: str | None = None,
    ) -> Adjective:
        """An adjective that can be said of the noun."""
        pool = self._pool(
            self.lexicon.adjectives,
            ("adjective", noun.kind, polarity),
            lambda a: a.polarity == polarity and goes_with(noun.kind, a.kinds),
        )
        found = [a for a in pool if a.lemma not in without and strength in (None, a.strength)]
        special = [a for a in found if a.kinds != ("any",)]
        return self.entry(special if special and self.chance(0.6) else found)

    def _pool(
        self, entries: Sequence[_E], key: Hashable, fits: Callable[[_E], bool]
    ) -> Sequence[_E]:
        """The entries of this split that fit; remembered under ``key``."""
        if key not in self._pools:
            self._pools[key] = tuple(e for e in entries if self.allows(e) and fits(e))
        return cast("Sequence[_E]", self._pools[key])


def _is_filler(noun: Noun, kinds: tuple[str, ...]) -> bool:
    """Wide nouns ("thing") and relatives ("aunt", of whom?) are used on purpose only."""
    wide = noun.kind.endswith((".top", ".tops", ".root")) or noun.kind == "person.relative"
    return not wide and goes_with(noun.kind, kinds)
