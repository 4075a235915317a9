"""micro-entailment: what the second sentence is to the first (entailed, neutral, contradicted).

Quantified sentences get their label from models of the world (every world is tried); the others
from how the second sentence was made from the first. Denials are on both sides, so that "not"
tells nothing by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from micro.examples import Example, Structure
from micro.grammar import phrases
from micro.grammar.clauses import PAST, Mood, copular, predicate, that_clause
from micro.grammar.draw import Draw, NoWordError
from micro.grammar.events import (
    Event,
    Thing,
    active,
    described,
    draw_intransitive,
    draw_person,
    draw_reversible,
    draw_transitive,
    passive,
    place_of,
)
from micro.grammar.lexicon import Adjective, Noun, SmallWord, Verb
from micro.grammar.trees import Node
from micro.tasks.quantifiers import (
    CONTRADICTED,
    ENTAILED,
    NEUTRAL,
    quantified,
    quantified_deeds,
    row,
)


def _forms(event: Event, alternative: Event) -> list[Example]:
    """Three rows from an event that entails ``alternative`` but not the other way round."""
    return [
        row(active(event), active(alternative), ENTAILED),
        row(active(alternative), active(event), NEUTRAL),
        row(active(event), active(alternative.negated()), CONTRADICTED),
    ]


def _denied_forms(event: Event, alternative: Event) -> list[Example]:
    """The same, denied: the wider denial entails the narrower one."""
    return [
        row(active(alternative.negated()), active(event.negated()), ENTAILED),
        row(active(event.negated()), active(alternative.negated()), NEUTRAL),
        row(active(alternative.negated()), active(event), CONTRADICTED),
    ]


def _either(draw: Draw, event: Event, alternative: Event) -> list[Example]:
    forms = _forms if draw.chance(0.5) else _denied_forms
    return forms(event, alternative)


def _kinds(draw: Draw) -> list[Example]:
    """Anna bought a poodle; Anna bought a dog."""
    while True:
        event = draw_transitive(draw, names=0.8)
        assert event.theme is not None
        assert isinstance(event.theme.word, Noun)
        wider = draw.lexicon.hypernym(event.theme.word)
        wide_enough = wider is not None and draw.allows(wider) and wider.lemma != "thing"
        if wider is not None and wide_enough and wider.mass == event.theme.word.mass:
            break
    determiner = None if wider.mass else "a"
    narrow = replace(event, theme=Thing(event.theme.word, determiner))
    return _either(draw, narrow, replace(event, theme=Thing(wider, determiner)))


def _described(draw: Draw) -> list[Example]:
    """Anna wore a red coat; Anna wore a coat."""
    event = draw_transitive(draw, names=0.9)
    assert event.theme is not None
    assert isinstance(event.theme.word, Noun)
    theme = Thing(event.theme.word, None if event.theme.word.mass else "a")
    with_adjective, _ = described(draw, theme)
    return _either(draw, replace(event, theme=with_adjective), replace(event, theme=theme))


def _setting(draw: Draw) -> list[Example]:
    """Anna slept on Monday; Anna slept."""
    event = draw_intransitive(draw, people=True, stays=True)
    settings: tuple[tuple[str, Thing | str], ...] = (
        place_of(draw.noun("place.room", "place.outside", "place.town")),
        ("on", draw.small("weekday")),
        ("before", draw.small("occasion")),
    )
    if draw.chance(0.3):
        settings = (("", draw.small("manner")),)
    return _either(draw, replace(event, setting=draw.pick(settings)), event)


def _conjuncts(draw: Draw) -> list[Example]:
    """Anna and Tom slept; Anna slept. Neither Anna nor Tom slept; Tom did not sleep."""
    event = draw_intransitive(draw, people=True, names=0.7)
    other = draw_person(draw, names=float(isinstance(event.agent.word, SmallWord)))
    while other.word.lemma == event.agent.word.lemma:
        other = draw_person(draw, names=float(isinstance(event.agent.word, SmallWord)))
    pair = (event.agent, other) if draw.chance(0.5) else (other, event.agent)
    if draw.chance(0.5):
        return [
            row(_joined(event, pair, "and"), active(event), ENTAILED),
            row(_joined(event, pair, "or"), active(event), NEUTRAL),
            row(_joined(event, pair, "nor"), active(event), CONTRADICTED),
        ]
    return [
        row(_joined(event, pair, "nor"), active(event.negated()), ENTAILED),
        row(_joined(event, pair, "or"), active(event.negated()), NEUTRAL),
        row(_joined(event, pair, "and"), active(event.negated()), CONTRADICTED),
    ]


def _joined(event: Event, pair: tuple[Thing, Thing], conjunction: str) -> Node:
    first, second = (thing.phrase() for thing in pair)
    subject = phrases.joined(first, second, conjunction)
    if conjunction == "nor":
        subject.before.insert(0, Node("neither", "neither", "CCONJ", relation="cc:preconj"))
    return predicate(subject, event.verb, event.mood)


def _roles(draw: Draw) -> list[Example]:
    """Anna helped Tom; Tom was helped by Anna; Tom helped Anna."""
    event = draw_reversible(draw, names=0.8)
    if draw.chance(0.5):
        event = event.negated()
    opposite = event.negated(not event.mood.negated)
    voices: list[Callable[[Event], Node]] = [active, passive]
    first, second = voices if draw.chance(0.6) else voices[::-1]
    other = draw.pick(voices)
    return [
        row(first(event), second(event), ENTAILED),
        row(first(event), other(event.swapped()), NEUTRAL),
        row(first(event), second(opposite), CONTRADICTED),
    ]


def _attitudes(draw: Draw) -> list[Example]:
    """Anna knew that the dog slept; the dog slept. Anna thought so: who knows."""
    knows = draw.verb("clausal", fits=lambda v: v.frame == "Awareness")
    thinks = draw.verb("clausal", fits=lambda v: v.frame == "Opinion")
    holder = Thing(draw.name())
    event = draw_intransitive(draw, names=0.5)
    while event.agent.word.lemma == holder.word.lemma:
        event = draw_intransitive(draw, names=0.5)
    event = event.negated(draw.chance(0.5))
    opposite = event.negated(not event.mood.negated)

    def held(verb: Verb, content: Event) -> Node:
        clause = that_clause(active(content), complementizer=draw.chance(0.5))
        return predicate(holder.phrase(), verb).right("ccomp", clause)

    return [
        row(held(knows, event), active(event), ENTAILED),
        row(held(thinks, event), active(draw.pick((event, opposite))), NEUTRAL),
        row(held(knows, event), active(opposite), CONTRADICTED),
    ]


def _qualities(draw: Draw) -> list[Example]:
    """The box was heavy and old; it was heavy; it was light; it was red."""
    opposites = draw.lexicon.opposites
    while True:
        noun = draw.noun("thing", "person", "place", "animal", "food.dish", "event")
        first = draw.adjective(noun)
        second = draw.adjective(noun, without=(first.lemma, opposites.get(first.lemma, "")))
        third = draw.adjective(noun, without=(first.lemma, second.lemma))
        known = {first.lemma, second.lemma, *(opposites.get(a.lemma, "") for a in (first, second))}
        if (
            first.lemma in opposites
            and third.lemma not in known
            and not _colours(first, second, third)
        ):
            break

    def is_(*words: str, mood: Mood = PAST) -> Node:
        head = phrases.adjectival(words[0])
        clause = copular(phrases.nominal(noun), head, mood)
        return phrases.joined(clause, phrases.adjectival(words[1])) if words[1:] else clause

    pair = (first.lemma, second.lemma) if draw.chance(0.5) else (second.lemma, first.lemma)
    negated = Mood(negated=True)
    if draw.chance(0.5):
        opposite = opposites[first.lemma]
        return [
            row(is_(*pair), is_(opposite, mood=negated), ENTAILED),
            row(is_(*pair), is_(third.lemma, mood=negated), NEUTRAL),
            row(is_(*pair), is_(first.lemma, mood=negated), CONTRADICTED),
        ]
    return [
        row(is_(*pair), is_(first.lemma), ENTAILED),
        row(is_(*pair), is_(third.lemma), NEUTRAL),
        row(is_(*pair), is_(opposites[first.lemma]), CONTRADICTED),
    ]


def _comparison(draw: Draw) -> list[Example]:
    """Anna was taller than Tom; Tom was shorter than Anna; Anna was tall."""
    pairs = (("tall", "short"), ("old", "young"), ("strong", "weak"), ("quick", "slow"))
    word, opposite = draw.pick(pairs) if draw.chance(0.5) else draw.pick(pairs)[::-1]
    anna = draw_person(draw, names=0.8)
    tom = draw_person(draw, names=float(isinstance(anna.word, SmallWord)))
    if anna == tom:
        raise NoWordError("the same person twice")

    def than(more: Thing, comparative: str, less: Thing) -> Node:
        return copular(more.phrase(), phrases.comparison(comparative, less.phrase()))

    stated = (anna, word, tom)
    absolute = copular(draw.pick((anna, tom)).phrase(), phrases.adjectival(word))
    return [
        row(than(*stated), than(tom, opposite, anna), ENTAILED),
        row(than(*stated), absolute, NEUTRAL),
        row(
            than(*stated),
            draw.pick((than(tom, word, anna), than(anna, opposite, tom))),
            CONTRADICTED,
        ),
    ]


_COLOURS = frozenset(
    {"red", "blue", "green", "black", "white", "yellow", "brown", "gray", "purple", "pink"}
)


def _colours(*adjectives: Adjective) -> bool:
    """A thing has one colour: two of them would contradict each other."""
    return sum(a.lemma in _COLOURS for a in adjectives) > 1


STRUCTURES = (
    Structure("kinds", _kinds, weight=3),
    Structure("described", _described, weight=2),
    Structure("setting", _setting, weight=2),
    Structure("conjuncts", _conjuncts, weight=2),
    Structure("roles", _roles, weight=4),
    Structure("attitudes", _attitudes, weight=2),
    Structure("qualities", _qualities, weight=2),
    Structure("comparison", _comparison, weight=2),
    Structure("quantified", quantified, weight=4),
    Structure("quantified-deeds", quantified_deeds, weight=2, held_out=True),
)
