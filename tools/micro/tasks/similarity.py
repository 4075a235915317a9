"""micro-similarity: how much two sentences have in common, from 0 to 5.

Sentences say who (agent) does (verb) what (theme), and whether it is denied. Each of the three
slots is compared by meaning; the score is

    5 × (0.4 × theme + 0.3 × verb + 0.3 × agent) × (0.6 if just one of the two is denied)

where two fillers are worth 1 if they mean the same, 0.7 if one is a kind of the other, 0.4 if both
are of one kind, 0.2 if the filler is in another slot of the other sentence, and 0 otherwise.
Voice, clefts and the order of words change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from micro.examples import Example, Structure
from micro.grammar.draw import Draw, NoWordError
from micro.grammar.events import (
    Event,
    Thing,
    active,
    draw_agent,
    draw_intransitive,
    draw_reversible,
    draw_theme,
    draw_transitive,
    object_cleft,
    passive,
    subject_cleft,
)
from micro.grammar.lexicon import Lexicon, Noun, Verb
from micro.grammar.trees import Node, annotate

HIGHEST = 5.0
WEIGHTS = {"theme": 0.4, "verb": 0.3, "agent": 0.3}
SAME, KIND, SIBLINGS, ELSEWHERE = 1.0, 0.7, 0.4, 0.2
DENIED = 0.6

Say = Callable[[Event], Node]
Change = Callable[[Draw, Event], Event]


def similarity(lexicon: Lexicon, first: Event, second: Event) -> float:
    """The score of two events by the formula above, rounded to a tenth."""
    slots = {
        "verb": _verbs(lexicon, first.verb, second.verb),
        "agent": _slot(lexicon, first, second, "agent"),
        "theme": _slot(lexicon, first, second, "theme"),
    }
    filled = [
        n for n in slots if n != "theme" or first.theme is not None or second.theme is not None
    ]
    total = sum(WEIGHTS[name] for name in filled)
    score = sum(WEIGHTS[name] * slots[name] for name in filled) / total
    if first.mood.negated != second.mood.negated:
        score *= DENIED
    return round(HIGHEST * score, 1)


def _verbs(lexicon: Lexicon, first: Verb, second: Verb) -> float:
    if first.lemma == second.lemma or lexicon.synonyms.get(first.lemma) == second.lemma:
        return SAME
    return SIBLINGS if first.frame == second.frame else 0.0


def _slot(lexicon: Lexicon, first: Event, second: Event, name: str) -> float:
    other = "theme" if name == "agent" else "agent"
    here: Thing | None = getattr(first, name)
    there: Thing | None = getattr(second, name)
    elsewhere: Thing | None = getattr(second, other)
    if here is None or there is None:
        return 0.0
    if elsewhere is not None and here.word.lemma == elsewhere.word.lemma:
        return ELSEWHERE
    return _fillers(lexicon, here, there)


def _fillers(lexicon: Lexicon, first: Thing, second: Thing) -> float:
    a, b = first.word, second.word
    if a.lemma == b.lemma or lexicon.synonyms.get(a.lemma) == b.lemma:
        return SAME
    if not isinstance(a, Noun) or not isinstance(b, Noun):
        # A name says nothing about who it is, beyond that it is a person.
        return (
            SIBLINGS if first.kind.startswith("person") == second.kind.startswith("person") else 0
        )
    if lexicon.is_a(a, b) or lexicon.is_a(b, a):
        return KIND
    return SIBLINGS if a.kind == b.kind else 0.0


def _changed_agent(draw: Draw, event: Event) -> Event:
    without = tuple(t.word.lemma for t in (event.agent, event.theme) if t is not None)
    return replace(event, agent=draw_agent(draw, event.verb, without=without))


def _changed_theme(draw: Draw, event: Event) -> Event:
    assert event.theme is not None
    theme = draw_theme(draw, event.verb, names=0.0, without=(event.theme.word.lemma,))
    return replace(event, theme=theme)


def _wider_theme(draw: Draw, event: Event) -> Event:
    assert event.theme is not None
    word = event.theme.word
    wider = draw.lexicon.hypernym(word) if isinstance(word, Noun) else None
    if wider is None or not draw.allows(wider) or wider.lemma == "thing":
        raise NoWordError("no wider noun")
    return replace(event, theme=Thing(wider, None if wider.mass else "a"))


def _changed_verb(draw: Draw, event: Event) -> Event:
    assert event.theme is not None
    kind = event.theme.kind
    verb = draw.verb(
        "transitive",
        fits=lambda v: (
            v.lemma != event.verb.lemma and kind in v.objects and v.subjects == ("person",)
        ),
    )
    return replace(event, verb=verb)


def _denied(draw: Draw, event: Event) -> Event:
    return event.negated(not event.mood.negated)


def _swapped(draw: Draw, event: Event) -> Event:
    return event.swapped()


def _unchanged(draw: Draw, event: Event) -> Event:
    return event


_CHANGES: tuple[Change, ...] = (
    _changed_agent,
    _changed_theme,
    _wider_theme,
    _changed_verb,
    _denied,
)


def _pair(draw: Draw, first: Event, second: Event, ways: tuple[Say, ...]) -> Example:
    say, again = draw.pick(ways), draw.pick(ways)
    score = similarity(draw.lexicon, first, second)
    return Example((annotate(say(first)),), score, (annotate(again(second)),))


def _steps(ways: tuple[Say, ...]) -> Callable[[Draw], list[Example]]:
    """One sentence against ever more changed ones."""

    def build(draw: Draw) -> list[Example]:
        event = draw_transitive(draw, names=0.6)
        if event.verb.subjects != ("person",):
            raise NoWordError("people's deeds only")
        event = event.negated(draw.chance(0.15))
        changed, rows = event, []
        for change in draw.random.sample(_CHANGES, 3):
            changed = change(draw, changed)
            rows.append(_pair(draw, event, changed, ways))
        return rows

    return build


def _roles(draw: Draw) -> list[Example]:
    event = draw_reversible(draw, names=0.7)
    changes: tuple[Change, ...] = (_swapped, _unchanged, _denied, _changed_agent)
    pair = draw.random.sample(changes, 2)
    return [_pair(draw, event, change(draw, event), (active, passive)) for change in pair]


def _strangers(draw: Draw) -> list[Example]:
    """Two sentences that have little to do with each other."""
    first, second = draw_transitive(draw), draw_transitive(draw)
    return [_pair(draw, first, second, (active, passive))]


def _short(draw: Draw) -> list[Example]:
    event = draw_intransitive(draw, people=True)
    other = draw_intransitive(draw, people=True)
    half = replace(other, agent=event.agent)
    return [
        _pair(draw, event, changed, (active,))
        for changed in (half, replace(event, agent=other.agent), _denied(draw, event))
        if changed.verb.lemma != event.verb.lemma
        or changed.agent != event.agent
        or changed.mood != event.mood
    ]


STRUCTURES = (
    Structure("steps", _steps((active, active, passive)), weight=5),
    Structure("roles", _roles, weight=4),
    Structure("strangers", _strangers, weight=4),
    Structure("short", _short, weight=2),
    Structure("clefts", _steps((active, subject_cleft, object_cleft)), held_out=True),
)
