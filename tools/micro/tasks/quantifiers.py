"""Quantified sentences for micro-entailment, labelled by trying every small world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product

from micro.examples import Example
from micro.grammar import phrases
from micro.grammar.clauses import predicate
from micro.grammar.draw import Draw
from micro.grammar.events import (
    Event,
    draw_agent,
    draw_intransitive,
    draw_theme,
)
from micro.grammar.lexicon import Noun
from micro.grammar.trees import Node, annotate

ENTAILED, NEUTRAL, CONTRADICTED = 0, 1, 2

_SIZES = (3, 8)  # how many there may be of a kind
_QUANTIFIERS: dict[str, Callable[[int, int], bool]] = {
    "all": lambda doing, of: doing == of,
    "some": lambda doing, of: doing > 0,
    "no": lambda doing, of: doing == 0,
    "most": lambda doing, of: 2 * doing > of,
    "not all": lambda doing, of: doing < of,
}


def row(first: Node, second: Node, label: int) -> Example:
    """A pair of sentences with its label."""
    return Example((annotate(first),), label, (annotate(second),))


@cache
def relation(premise: tuple[str, bool], hypothesis: tuple[str, bool]) -> int:
    """The label of two quantified sentences; each is (quantifier, is the noun the narrow one?).

    Tried over all worlds in which there are few or many of the narrow kind, and few or many
    others of the wide kind: "most dogs" says nothing about poodles if poodles are few.
    """
    follows = [
        _true(hypothesis, doing, of)
        for of in product(_SIZES, _SIZES)
        for doing in product(range(of[0] + 1), range(of[1] + 1))
        if _true(premise, doing, of)
    ]
    return ENTAILED if all(follows) else NEUTRAL if any(follows) else CONTRADICTED


def _true(sentence: tuple[str, bool], doing: tuple[int, int], of: tuple[int, int]) -> bool:
    """``doing`` and ``of`` count the narrow kind and the rest of the wide kind."""
    quantifier, is_narrow = sentence
    is_said_of = _QUANTIFIERS[quantifier]
    return is_said_of(doing[0], of[0]) if is_narrow else is_said_of(sum(doing), sum(of))


_SENTENCES = tuple(product(_QUANTIFIERS, (True, False)))


def _premises(hypothesis: tuple[str, bool], label: int) -> list[tuple[str, bool]]:
    return [p for p in _SENTENCES if p != hypothesis and relation(p, hypothesis) == label]


def quantified(draw: Draw) -> list[Example]:
    """All dogs slept; some poodles slept. One hypothesis, a premise for every label."""
    while True:
        event = draw_intransitive(draw, names=0.0)
        assert isinstance(event.agent.word, Noun)
        narrow = event.agent.word
        wide = draw.lexicon.hypernym(narrow)
        if wide is not None and draw.allows(wide) and not wide.mass and not narrow.mass:
            break
    possible = [h for h in _SENTENCES if all(_premises(h, label) for label in range(3))]
    hypothesis = draw.pick(possible)
    return [
        row(
            _quantify(event, draw.pick(_premises(hypothesis, label)), narrow, wide),
            _quantify(event, hypothesis, narrow, wide),
            label,
        )
        for label in (ENTAILED, NEUTRAL, CONTRADICTED)
    ]


def _quantify(event: Event, sentence: tuple[str, bool], narrow: Noun, wide: Noun) -> Node:
    quantifier, is_narrow = sentence
    word = "all" if quantifier == "not all" else quantifier
    subject = phrases.nominal(narrow if is_narrow else wide, word, plural=True)
    if quantifier == "not all":
        subject.before.insert(0, Node("not", "not", "PART", "Polarity=Neg", "advmod"))
    head = predicate(subject, event.verb, event.mood)
    if event.theme is not None:
        head.right("obj", event.theme.phrase())
    return head


def quantified_deeds(draw: Draw) -> list[Example]:
    """Every pupil read the poem; some pupils read the poem."""
    verb = draw.verb("transitive", fits=lambda v: v.subjects == ("person",))
    agent = draw_agent(draw, verb, names=0.0)
    assert isinstance(agent.word, Noun)
    event = Event(verb, agent, replace(draw_theme(draw, verb, names=0.0), determiner="the"))
    noun = agent.word
    possible = [h for h in _SENTENCES if h[1] and all(_narrow(h, label) for label in range(3))]
    hypothesis = draw.pick(possible)
    return [
        row(
            _quantify(event, draw.pick(_narrow(hypothesis, label)), noun, noun),
            _quantify(event, hypothesis, noun, noun),
            label,
        )
        for label in (ENTAILED, NEUTRAL, CONTRADICTED)
    ]


def _narrow(hypothesis: tuple[str, bool], label: int) -> list[tuple[str, bool]]:
    return [p for p in _premises(hypothesis, label) if p[1]]
