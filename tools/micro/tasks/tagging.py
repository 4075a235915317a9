"""micro-tagging: which words name who does it, to what, for whom, where and when.

The same words in the same order have other roles in the active and in the passive, so the form of
the verb decides. Phrases are tagged without their preposition; what no verb asks for is outside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from micro.examples import Example, Structure
from micro.grammar.clauses import PAST, Mood, coordinate, copular, predicate
from micro.grammar.draw import Draw
from micro.grammar.events import (
    Event,
    Thing,
    active,
    draw_ditransitive,
    draw_intransitive,
    draw_reversible,
    draw_transitive,
    object_cleft,
    passive,
    place_of,
    relativizer,
    subject_cleft,
)
from micro.grammar.lexicon import Noun
from micro.grammar.phrases import adjectival
from micro.grammar.trees import Node, annotate
from micro.tasks.roles import deeds, phrase
from microtome.tasks.annotation.gold import Annotated
from microtome.tasks.annotation.treebanks import Sentence
from microtome.tasks.embedded import ROLE_TAGS

# Auxiliaries in the active too, so that "was" alone doesn't tell the passive.
_MOODS = (
    PAST,
    Mood(progressive=True),
    Mood(perfect=True),
    Mood("present", perfect=True),
    Mood("present", perfect=True, progressive=True),
    Mood(modal="will"),
)
_PASSIVE_MOODS = tuple(mood for mood in _MOODS if not (mood.perfect and mood.progressive))


def tagged(*roots: Node) -> list[Example]:
    """A row per sentence."""
    found = (_spaced(annotate(root)) for root in roots)
    return [Example((each,), _tags(each)) for each in found]


def _spaced(annotated: Annotated) -> Annotated:
    """The sentence with a space between all words, as taggers are given it."""
    words, start = [], 0
    for word in annotated.sentence.words:
        misc = "|".join(part for part in word.misc.split("|") if part != "SpaceAfter=No") or "_"
        words.append(replace(word, misc=misc, start=start, stop=start + len(word.form)))
        start += len(word.form) + 1
    text = " ".join(word.form for word in words)
    return replace(annotated, sentence=Sentence(text, tuple(words)))


def _tags(annotated: Annotated) -> tuple[int, ...]:
    words = annotated.sentence.words
    tags = ["O"] * len(words)
    for deed in deeds(annotated):
        for role, head in deed.heads.items():
            first, *rest = phrase(words, head)
            tags[first] = f"B-{role}"
            for place in rest:
                tags[place] = f"I-{role}"
    return tuple(ROLE_TAGS.index(tag) for tag in tags)


def _moody(draw: Draw, event: Event, moods: tuple[Mood, ...] = _PASSIVE_MOODS) -> Event:
    return replace(event, mood=replace(draw.pick(moods), negated=draw.chance(0.15)))


def _voices(draw: Draw) -> list[Example]:
    """The chef was tasting the soup. The soup was tasted by the chef."""
    event = draw_transitive(draw)
    spoken, heard = _moody(draw, event, _MOODS), _moody(draw, event)
    return tagged(active(spoken), passive(heard, with_agent=draw.chance(0.7)))


def _roles(draw: Draw) -> list[Example]:
    """Anna was helping Tom. Anna was helped by Tom."""
    event = draw_reversible(draw, names=0.7)
    return tagged(active(_moody(draw, event, _MOODS)), passive(_moody(draw, event.swapped())))


def _giving(draw: Draw) -> list[Example]:
    """Anna gave Tom the book. Anna gave the book to Tom."""
    event = _moody(draw, draw_ditransitive(draw), _MOODS)
    return tagged(active(event, dative="double"), active(event))


def _given(draw: Draw) -> list[Example]:
    """The book was given to Tom by Anna."""
    event = _moody(draw, draw_ditransitive(draw))
    return tagged(passive(event, with_agent=draw.chance(0.7)))


def _settings(draw: Draw) -> list[Example]:
    """Anna slept in the garden. Anna slept on Monday."""
    event = draw_intransitive(draw, people=True, stays=True)
    place = place_of(draw.noun("place.room", "place.outside", "place.town"))
    time = ("on", draw.small("weekday")) if draw.chance(0.5) else ("at", "noon")
    here, then = (replace(_moody(draw, event, _MOODS), setting=each) for each in (place, time))
    return tagged(active(here), active(then))


def _placed(draw: Draw) -> list[Example]:
    """The garden was visited by Anna. The soup was tasted in the garden."""
    place = draw.noun("place.room", "place.outside", "place.town")
    visit = draw.verb("transitive", fits=lambda v: place.kind in v.objects)
    eaten = replace(_moody(draw, draw_transitive(draw)), setting=place_of(place))
    seen = _moody(draw, Event(visit, Thing(draw.name()), Thing(place)))
    return tagged(passive(seen), passive(eaten, with_agent=False))


def _clefts(draw: Draw) -> list[Example]:
    """It was Anna who helped Tom. It was Anna who Tom helped."""
    event = draw_reversible(draw, names=0.7)
    return tagged(subject_cleft(event), object_cleft(event.swapped()))


def _two(draw: Draw) -> list[Example]:
    """Anna helped Tom, and the soup was tasted by the chef."""
    ways: tuple[Callable[[Event], Node], ...] = (active, passive)
    said = []
    for _ in range(2):
        event = draw_reversible(draw) if draw.chance(0.5) else draw_transitive(draw)
        said.append(draw.pick(ways)(_moody(draw, event)))
    return tagged(coordinate(*said, pause=False))


def _states(draw: Draw) -> list[Example]:
    """The chef was tall, and the waiter was helped by Tom. (The chef does nothing.)"""
    event = _moody(draw, draw_reversible(draw, names=0.3))
    other = draw.noun("person", without=(event.agent.word.lemma,))
    state = copular(Thing(other).phrase(), adjectival(draw.adjective(other).lemma))
    deed = draw.pick((active, passive))(event)
    pair = (state, deed) if draw.chance(0.5) else (deed, state)
    return tagged(coordinate(*pair, pause=False))


def _relative(draw: Draw) -> list[Example]:
    """The chef who thanked Tom was tasting the soup."""
    event = _moody(draw, draw_transitive(draw, names=0.0), _MOODS)
    if not isinstance(event.agent.word, Noun) or not event.agent.kind.startswith("person"):
        event = replace(event, agent=Thing(draw.noun("person")))
    thanked = draw.verb("transitive", fits=lambda v: v.subjects == v.objects == ("person",))
    clause = predicate(relativizer("who", "nsubj"), thanked).right(
        "obj", Thing(draw.name()).phrase()
    )
    head = active(event)
    subject = next(node for node in head.before if node.relation == "nsubj")
    subject.right("acl:relcl", clause)
    return tagged(head)


STRUCTURES = (
    Structure("voices", _voices, weight=3),
    Structure("roles", _roles, weight=5),
    Structure("giving", _giving, weight=2),
    Structure("settings", _settings),
    Structure("placed", _placed),
    Structure("clefts", _clefts, weight=2),
    Structure("two", _two, weight=3),
    Structure("states", _states, weight=2),
    Structure("given", _given, held_out=True, weight=3),
    Structure("relative", _relative, held_out=True, weight=3),
)
