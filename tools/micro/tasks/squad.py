"""micro-squad: questions about a short passage, half of them without an answer in it.

A question without an answer asks for what the passage nearly says: the same verb with another
person, the other way round, or what the passage denies. So a plausible answer is always there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from micro.examples import Example, Structure
from micro.grammar import phrases
from micro.grammar.clauses import Mood, coordinate, predicate
from micro.grammar.draw import Draw, NoWordError
from micro.grammar.events import (
    Event,
    Thing,
    active,
    draw_ditransitive,
    draw_intransitive,
    draw_reversible,
    passive,
    place_of,
    relativizer,
)
from micro.grammar.lexicon import SmallWord, Verb
from micro.grammar.trees import Node, annotate
from micro.tasks import questions
from microtome.tasks.annotation.gold import Annotated
from microtome.tasks.task import Answer


def _said(*roots: Node) -> tuple[Annotated, ...]:
    return tuple(annotate(root) for root in roots)


def _row(passage: tuple[Annotated, ...], question: Node, *answers: str) -> Example:
    """A question with its accepted answers; their first characters are looked up."""
    text = " ".join(part.text for part in passage)
    asked = annotate(question, mark="?")
    return Example((asked,), tuple(_located(text, answer) for answer in answers), passage)


def _located(passage: str, answer: str) -> Answer:
    places = list(re.finditer(rf"\b{re.escape(answer)}\b", passage, re.IGNORECASE))
    if len(places) != 1:
        raise NoWordError(f"{answer!r} is {len(places)} times in the passage")
    return Answer(places[0].group(), places[0].start())


def _text(thing: Thing) -> str:
    """The noun phrase as it is written inside a sentence."""
    return annotate(thing.phrase(), mark="").text if not _named(thing) else thing.phrase().form


def _named(thing: Thing) -> bool:
    return isinstance(thing.word, SmallWord)


def _names(draw: Draw, n: int) -> list[Thing]:
    found: list[Thing] = []
    while len(found) < n:
        name = Thing(draw.name(without=tuple(t.word.lemma for t in found)))
        found.append(name)
    return found


def _two_deeds(draw: Draw) -> tuple[Event, Event]:
    """Two people do different things to different things of one kind."""
    verb = draw.verb("transitive", fits=lambda v: v.subjects == ("person",) != v.objects)
    other = draw.verb(
        "transitive",
        fits=lambda v: (
            v.objects == verb.objects and v.subjects == verb.subjects and v.lemma != verb.lemma
        ),
    )
    anna, tom = _names(draw, 2)
    first = draw.noun(*verb.objects)
    second = draw.noun(*verb.objects, without=(first.lemma,))
    return Event(verb, anna, Thing(first)), Event(other, tom, Thing(second))


def _deeds(draw: Draw) -> list[Example]:
    """Anna fed the cat, and Tom washed the dog. Who washed the cat? (not said)."""
    first, second = _two_deeds(draw)
    assert first.theme is not None
    assert second.theme is not None
    passage = _said(coordinate(active(first), active(second), pause=False))
    asked = draw.pick((first, second))
    assert asked.theme is not None
    other = second if asked is first else first
    crossed = replace(asked, theme=other.theme), replace(asked, agent=other.agent)
    if draw.chance(0.5):
        return [
            _row(passage, questions.who(asked), _text(asked.agent)),
            _row(passage, questions.who(crossed[0])),
        ]
    return [
        _row(passage, questions.what(asked), _text(asked.theme)),
        _row(passage, questions.what(crossed[1])),
    ]


def _passive_deeds(draw: Draw) -> list[Example]:
    """The cat was fed by Anna, and the dog was washed by Tom. Who fed the dog? (not said)."""
    first, second = _two_deeds(draw)
    passage = _said(coordinate(passive(first), passive(second), pause=False))
    asked, other = (first, second) if draw.chance(0.5) else (second, first)
    assert asked.theme is not None
    if draw.chance(0.5):
        return [
            _row(passage, questions.who(asked), _text(asked.agent)),
            _row(passage, questions.who(replace(asked, theme=other.theme))),
        ]
    missed = replace(asked, agent=other.agent)
    return [
        _row(passage, questions.what(asked), _text(asked.theme)),
        _row(passage, questions.what(missed)),
    ]


def _roles(draw: Draw) -> list[Example]:
    """Anna helped Tom. Who did Tom help? (not said)."""
    event = draw_reversible(draw, names=0.85)
    assert event.theme is not None
    say = draw.pick(("active", "passive"))
    passage = _said(active(event) if say == "active" else passive(event))
    if draw.chance(0.5):
        return [
            _row(passage, questions.who(event), _text(event.agent)),
            _row(passage, questions.who(event.swapped())),
        ]
    return [
        _row(passage, questions.what(event), _text(event.theme)),
        _row(passage, questions.what(event.swapped())),
    ]


def _giving(draw: Draw) -> list[Example]:
    """Anna gave Tom the book. What did Tom give to Anna? (not said)."""
    event = draw_ditransitive(draw, names=0.9)
    assert event.theme is not None
    assert event.recipient is not None
    event = replace(event, theme=replace(event.theme, determiner="the"))
    assert event.theme is not None
    passage = _said(active(event, dative=draw.pick(("to", "double"))))
    options: list[tuple[Callable[[Event], Node], Thing | None]] = [
        (questions.who, event.agent),
        (questions.what, event.theme),
        (questions.to_whom, event.recipient),
    ]
    ask, answer = draw.pick(options)
    assert answer is not None
    return [_row(passage, ask(event), _text(answer)), _row(passage, ask(event.swapped()))]


def _denial(draw: Draw) -> list[Example]:
    """Tom fed the dog, but he did not feed the cat. Who fed the cat? (not said)."""
    first, second = _two_deeds(draw)
    assert first.theme is not None
    assert second.theme is not None
    denied = replace(first, theme=second.theme, agent=second.agent).negated()
    pair = (first, denied) if draw.chance(0.5) else (denied, first)
    passage = _said(coordinate(active(pair[0]), active(pair[1]), "but"))
    if draw.chance(0.5):
        return [
            _row(passage, questions.who(first), _text(first.agent)),
            _row(passage, questions.who(denied.negated(False))),
        ]
    return [
        _row(passage, questions.what(first), _text(first.theme)),
        _row(passage, questions.what(denied.negated(False))),
    ]


def _settings(draw: Draw) -> list[Example]:
    """Anna slept in the garden, and Tom ran on Monday. Where did Tom run? (not said)."""
    anna, tom = _names(draw, 2)
    verbs: list[Verb] = [draw_intransitive(draw, people=True, stays=True).verb for _ in range(2)]
    if verbs[0].lemma == verbs[1].lemma:
        raise NoWordError("the same deed twice")
    place = draw.noun("place.room", "place.outside", "place.town")
    day = draw.small("weekday")
    here = Event(verbs[0], anna, setting=place_of(place))
    then = Event(verbs[1], tom, setting=("on", day))
    pair = (here, then) if draw.chance(0.5) else (then, here)
    passage = _said(coordinate(active(pair[0]), active(pair[1]), pause=False))
    if draw.chance(0.5):
        answers = (_setting_text(here), _text(Thing(place)))
        return [
            _row(passage, questions.adverbial(here, "where"), *answers),
            _row(passage, questions.adverbial(then, "where")),
        ]
    return [
        _row(
            passage, questions.adverbial(then, "when"), f"on {day.capitalize()}", day.capitalize()
        ),
        _row(passage, questions.adverbial(here, "when")),
    ]


def _setting_text(event: Event) -> str:
    assert event.setting is not None
    preposition, place = event.setting
    assert isinstance(place, Thing)
    return f"{preposition} {_text(place)}"


def _pronouns(draw: Draw) -> list[Example]:
    """Anna thanked Tom. He fed the cat. Who fed the cat? (not said)."""
    helped = draw.verb("transitive", fits=lambda v: v.subjects == v.objects == ("person",))
    deed, _ = _two_deeds(draw)
    assert deed.theme is not None
    anna, tom = Thing(draw.name("f"), entity=1), Thing(draw.name("m"), entity=2)
    pair = (anna, tom) if draw.chance(0.5) else (tom, anna)
    doer = draw.pick(pair)
    other = pair[1] if doer is pair[0] else pair[0]
    first = active(Event(helped, *pair))
    pronoun = phrases.pronoun(phrases.subject_pronoun(doer.gender), entity=doer.entity)
    second = predicate(pronoun, deed.verb).right("obj", deed.theme.phrase())
    passage = _said(coordinate(first, second, pause=False))
    if draw.chance(0.5):
        return [
            _row(passage, questions.what(replace(deed, agent=doer)), _text(deed.theme)),
            _row(passage, questions.what(replace(deed, agent=other))),
        ]
    return [
        _row(passage, questions.who(replace(deed, agent=doer)), _text(doer)),
        _row(passage, questions.who(Event(helped, doer, deed.theme)))
        if deed.theme.kind.startswith("animal")
        else _row(passage, questions.what(replace(deed, agent=other))),
    ]


def _relative(draw: Draw) -> list[Example]:
    """The chef who thanked Tom fed the cat. What did Tom feed? (not said)."""
    helped = draw.verb("transitive", fits=lambda v: v.subjects == v.objects == ("person",))
    deed, _ = _two_deeds(draw)
    assert deed.theme is not None
    (tom,) = _names(draw, 1)
    chef = Thing(draw.noun("person", domain=deed.verb.domain))
    subject = chef.phrase()
    clause = predicate(relativizer("who", "nsubj"), helped, Mood()).right("obj", tom.phrase())
    passage = _said(
        predicate(subject.right("acl:relcl", clause), deed.verb).right("obj", deed.theme.phrase())
    )
    if draw.chance(0.5):
        return [
            _row(passage, questions.what(replace(deed, agent=chef)), _text(deed.theme)),
            _row(passage, questions.what(replace(deed, agent=tom))),
        ]
    thanked = Event(helped, chef, tom)
    return [
        _row(passage, questions.who(thanked), _text(chef)),
        _row(passage, questions.who(thanked.swapped())),
    ]


STRUCTURES = (
    Structure("deeds", _deeds, weight=2),
    Structure("passive-deeds", _passive_deeds, held_out=True),
    Structure("roles", _roles, weight=10),
    Structure("giving", _giving, weight=4),
    Structure("denial", _denial),
    Structure("settings", _settings),
    Structure("pronouns", _pronouns, weight=2),
    Structure("relative", _relative, held_out=True),
)
