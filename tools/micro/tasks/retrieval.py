"""micro-retrieval: questions, and the sentences of the split that answer them.

A sentence answers a question if it says that the deed took place and names what is asked for; a
poodle is a dog. Every question is judged against every sentence of its split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from micro.examples import DOCUMENT, Example, Structure
from micro.grammar import lexicon
from micro.grammar.draw import Draw, NoWordError
from micro.grammar.events import (
    Event,
    Thing,
    active,
    draw_agent,
    draw_ditransitive,
    draw_intransitive,
    draw_reversible,
    draw_transitive,
    object_cleft,
    passive,
    place_of,
    subject_cleft,
)
from micro.grammar.lexicon import Noun
from micro.grammar.trees import Node, annotate
from micro.tasks import questions
from micro.tasks.roles import Deed, deeds
from microtome.tasks.annotation.gold import Annotated, GoldRow
from microtome.tasks.task import Judgement

Say = Callable[[Event], Node]


def judged(rows: Sequence[GoldRow]) -> tuple[GoldRow, ...]:
    """The rows with the judgements of their questions."""
    by_verb: dict[str, list[tuple[str, Annotated, Deed]]] = {}
    for row in rows:
        for part in row.first if row.label is None else ():
            for deed in deeds(part):
                place = row.id.removeprefix(DOCUMENT), part, deed
                by_verb.setdefault(_meaning(deed.verb), []).append(place)
    return tuple(row if row.label is None else _judged(row, by_verb) for row in rows)


def _judged(row: GoldRow, by_verb: dict[str, list[tuple[str, Annotated, Deed]]]) -> GoldRow:
    (question,) = row.first
    (asked,) = deeds(question)
    found = [
        Judgement(name, 1)
        for name, part, deed in by_verb[_meaning(asked.verb)]
        if _answers(question, asked, part, deed)
    ]
    assert found, row.text
    return replace(row, label=tuple(found))


def _answers(question: Annotated, asked: Deed, part: Annotated, deed: Deed) -> bool:
    if deed.denied:
        return False
    for role, head in asked.heads.items():
        word = question.sentence.words[head]
        if role not in deed.heads:
            return False
        there = part.sentence.words[deed.heads[role]].lemma
        if word.upos in ("NOUN", "PROPN") and not _is_a(there, word.lemma):
            return False
    return True


def _is_a(narrow: str, wide: str) -> bool:
    if _meaning(narrow) == _meaning(wide):
        return True
    words = lexicon.load()
    nouns = [noun for noun in words.nouns if noun.lemma == narrow]
    return any(words.is_a(noun, words.noun(wide)) for noun in nouns) if wide.islower() else False


def _meaning(lemma: str) -> str:
    """One of the words that mean the same."""
    return min(lemma, lexicon.load().synonyms.get(lemma, lemma))


def _set(asked: Iterable[Node], *said: Node) -> list[Example]:
    """Questions, then the sentences that they might be answered by."""
    return [
        *(Example((annotate(question, mark="?"),), ()) for question in asked),
        *(Example((annotate(sentence),), None) for sentence in said),
    ]


def _roles(*ways: Say) -> Callable[[Draw], list[Example]]:
    """Who helped Anna? Who did Anna help? (Anna helped Tom. Ruth helped Anna.)."""

    def build(draw: Draw) -> list[Example]:
        event = draw_reversible(draw, names=0.7)
        assert event.theme is not None
        taken = (event.agent.word.lemma, event.theme.word.lemma)
        named = 0.0 if isinstance(event.agent.word, Noun) else 1.0
        other = draw_agent(draw, event.verb, names=named, without=taken)
        back = Event(event.verb, other, event.agent)
        asked = (questions.what(event), questions.who(back))
        return _set(asked, draw.pick(ways)(event), draw.pick(ways)(back))

    return build


def _deeds(*ways: Say) -> Callable[[Draw], list[Example]]:
    """Who fed the cat? (Tom fed the cat. Tom fed the dog. Ruth washed the cat.)."""

    def build(draw: Draw) -> list[Example]:
        event = _people(draw)
        assert event.theme is not None
        kind = event.theme.kind
        verb = draw.verb(
            "transitive", fits=lambda v: kind in v.objects and v.lemma != event.verb.lemma
        )
        noun = draw.noun(*event.verb.objects, without=(event.theme.word.lemma,))
        near = replace(event, theme=Thing(noun))
        other = Event(verb, draw_agent(draw, verb, without=(event.agent.word.lemma,)), event.theme)
        asked = (questions.who(event), questions.what(other))
        return _set(asked, *(draw.pick(ways)(each) for each in (event, near, other)))

    return build


def _denials(draw: Draw) -> list[Example]:
    """Who was feeding the cat? (Tom was feeding the cat. Ruth was not feeding the cat.)."""
    event = _people(draw)
    event = replace(event, mood=replace(event.mood, progressive=True))
    agent = draw_agent(draw, event.verb, without=(event.agent.word.lemma,))
    return _set(
        [questions.who(event)], active(event), active(replace(event, agent=agent).negated())
    )


def _kinds(draw: Draw) -> list[Example]:
    """When did Tom feed a dog? (Tom fed the poodle on Friday. Tom fed the crow on Monday.)."""
    event = _people(draw)
    assert event.theme is not None
    word = event.theme.word
    wider = draw.lexicon.hypernym(word) if isinstance(word, Noun) else None
    if wider is None or not draw.allows(wider) or wider.lemma == "thing":
        raise NoWordError("no wider noun")
    outside = draw.noun(*event.verb.objects, without=(word.lemma,))
    if draw.lexicon.is_a(outside, wider):
        raise NoWordError("a noun of the same kind")
    thing = Thing(wider, None if wider.mass else "a")
    asked = questions.adverbial(event, "when").right("obj", thing.phrase())
    days = [("on", draw.small("weekday")) for _ in range(2)]
    other = replace(event, theme=Thing(outside), setting=days[0])
    return _set([asked], active(replace(event, setting=days[1])), active(other))


def _people(draw: Draw) -> Event:
    event = draw_transitive(draw, names=0.7)
    if event.verb.subjects != ("person",):
        raise NoWordError("people's deeds only")
    assert event.theme is not None
    return replace(event, theme=replace(event.theme, determiner="the"))


def _giving(*ways: Say) -> Callable[[Draw], list[Example]]:
    """Who gave the book to Tom? (Anna gave the book to Tom. Tom gave the book to Anna.)."""

    def build(draw: Draw) -> list[Example]:
        event = draw_ditransitive(draw, names=0.9)
        assert event.theme is not None
        event = replace(event, theme=replace(event.theme, determiner="the"))
        back = event.swapped()
        asks = draw.random.sample((questions.who, questions.to_whom), 2)
        return _set((asks[0](event), asks[1](event)), draw.pick(ways)(event), draw.pick(ways)(back))

    return build


def _double(event: Event) -> Node:
    return active(event, dative="double")


def _settings(draw: Draw) -> list[Example]:
    """Where did Tom sleep? When did he? (Tom slept in the garden. Tom slept on Monday.)."""
    event = draw_intransitive(draw, people=True, stays=True)
    here = replace(event, setting=place_of(draw.noun("place.room", "place.outside", "place.town")))
    then = replace(event, setting=("on", draw.small("weekday")))
    asked = (questions.adverbial(event, "where"), questions.adverbial(event, "when"))
    return _set(asked, active(here), active(then))


STRUCTURES = (
    Structure("roles", _roles(active, active, passive), weight=4),
    Structure("deeds", _deeds(active, passive), weight=3),
    Structure("denials", _denials, weight=2),
    Structure("kinds", _kinds, weight=3),
    Structure("giving", _giving(active, _double), weight=2),
    Structure("settings", _settings, weight=2),
    Structure("role-clefts", _roles(subject_cleft, object_cleft), held_out=True, weight=2),
    Structure("deed-clefts", _deeds(subject_cleft, object_cleft), held_out=True, weight=2),
)
