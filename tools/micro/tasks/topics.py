"""micro-topics: what the things that happened were about; several labels, or none.

The topic of a deed is that of the thing that it is done to; who does it doesn't matter. What is
denied, doubted or only thought doesn't count. Verbs have auxiliaries, so that their form is the
same when they are denied. There are four topics, so that a small model learns from 2,000 rows what
each is made of, and then which deed counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from micro.examples import Example, Structure
from micro.grammar import lexicon
from micro.grammar.clauses import Mood, coordinate, predicate, that_clause
from micro.grammar.draw import Draw
from micro.grammar.events import Event, Thing, active, draw_person, passive
from micro.grammar.lexicon import Noun, Verb, goes_with
from micro.grammar.phrases import pronoun
from micro.grammar.trees import Node, annotate
from microtome.tasks.embedded import TOPICS

_DOMAINS = {
    "arts": ("film", "music"),
    "food": ("food",),
    "home": ("home", "garden"),
    "outings": ("sport", "travel"),
}
# Classes of things that nobody would sort under the lexicon's domain alone.
_MIXED = (
    "place.outside", "place.yard", "place.town", "thing.device", "thing.money", "thing.toy",
    "event.party", "event.fun", "work.picture", "work.pictures",
)  # fmt: skip
_PAST_MOODS = (Mood(perfect=True), Mood(progressive=True))
_MOODS = (*_PAST_MOODS, Mood("present", perfect=True))

Say = Callable[[Draw, Event, bool], Node]
"""How a deed is told: as one that happened, or as one that didn't."""


def _event(draw: Draw, without: str | None = None) -> Event:
    """Somebody does something to a thing of one of the topics, except ``without``."""
    topic = draw.pick([topic for topic in TOPICS if topic != without])
    noun = draw.entry(_things(topic), lambda n: any(map(draw.allows, _deeds(n))))
    person = draw_person(draw, names=0.6)
    return Event(draw.entry(_deeds(noun)), person, Thing(noun), mood=draw.pick(_MOODS))


@cache
def _things(topic: str) -> tuple[Noun, ...]:
    return tuple(
        noun
        for noun in lexicon.load().nouns
        if noun.domain in _DOMAINS[topic]
        and noun.kind not in _MIXED
        and not noun.kind.startswith("person")
        and _deeds(noun)
    )


@cache
def _deeds(noun: Noun) -> tuple[Verb, ...]:
    """What people do to it."""
    return tuple(
        verb
        for verb in lexicon.load().verbs
        if verb.kind == "transitive"
        and verb.subjects == ("person",)
        and goes_with(noun.kind, verb.objects)
    )


def _topic(event: Event) -> int:
    assert event.theme is not None
    assert isinstance(event.theme.word, Noun)
    domain = event.theme.word.domain
    return next(i for i, topic in enumerate(TOPICS) if domain in _DOMAINS[topic])


def _denied(draw: Draw, event: Event, happened: bool) -> Node:
    """The chef had (not) watched the film."""
    mood = replace(event.mood, negated=not happened, contracted=draw.chance(0.3))
    return active(replace(event, mood=mood))


def _nobody(draw: Draw, event: Event, happened: bool) -> Node:
    """Someone (nobody) had watched the film."""
    head = active(event)
    place = next(i for i, node in enumerate(head.before) if node.relation == "nsubj")
    head.before[place] = pronoun("someone" if happened else "nobody")
    head.before[place].relation = "nsubj"
    return head


def _reported(draw: Draw, event: Event, happened: bool) -> Node:
    """Ruth knew (doubted, thought) that Tom had watched the film."""
    if happened:
        verb = draw.verb("clausal", fits=lambda v: v.frame == "Awareness")
    else:
        verb = draw.verb("clausal", "doubting", fits=lambda v: v.frame in ("Opinion", "Certainty"))
    told = replace(event, mood=draw.pick(_PAST_MOODS))
    return predicate(Thing(draw.name()).phrase(), verb).right("ccomp", that_clause(active(told)))


def _passive(draw: Draw, event: Event, happened: bool) -> Node:
    """The film had (not) been watched by the chef."""
    mood = Mood(event.mood.tense, perfect=True, negated=not happened)
    return passive(replace(event, mood=mood), with_agent=draw.chance(0.7))


def _single(say: Say) -> Callable[[Draw], list[Example]]:
    def build(draw: Draw) -> list[Example]:
        event = _event(draw)
        return [
            Example((annotate(say(draw, event, happened)),), frozenset([_topic(event)] * happened))
            for happened in (True, False)
        ]

    return build


def _two(say: Say) -> Callable[[Draw], list[Example]]:
    """Two deeds of different topics: one of them happened, the other, sometimes both or none.

    Most rows have one denial: counting them doesn't tell which of the deeds happened.
    """

    def build(draw: Draw) -> list[Example]:
        first = _event(draw)
        second = _event(draw, without=TOPICS[_topic(first)])
        rows = []
        alike = [(draw.chance(0.6),) * 2] if draw.chance(0.7) else []
        for told in ((True, False), (False, True), *alike):
            pair = [say(draw, *each) for each in zip((first, second), told, strict=True)]
            conjunction = "and" if told[0] == told[1] else draw.pick(("and", "but"))
            root = coordinate(*pair, conjunction, pause=False)
            happened = [e for e, so in zip((first, second), told, strict=True) if so]
            rows.append(Example((annotate(root),), frozenset(map(_topic, happened))))
        return rows

    return build


def _mixed(draw: Draw, event: Event, happened: bool) -> Node:
    return draw.pick((_denied, _nobody, _denied))(draw, event, happened)


STRUCTURES = (
    Structure("single", _single(_denied)),
    Structure("reported", _single(_reported)),
    Structure("two", _two(_denied), weight=5),
    Structure("mixed", _two(_mixed), weight=5),
    Structure("passive", _single(_passive), held_out=True),
    Structure("two-passives", _two(_passive), held_out=True),
)
