"""micro-acceptability: is it English.

Minimal pairs: agreement across attractors, reflexives, determiners, word order, verb forms,
argument structure, case. In every set both members have (nearly) the same words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from micro.examples import Example, Structure
from micro.grammar import phrases
from micro.grammar.clauses import PAST, PRESENT, copular, predicate
from micro.grammar.draw import Draw, NoWordError
from micro.grammar.events import (
    Thing,
    active,
    draw_reversible,
    draw_transitive,
    relativizer,
)
from micro.grammar.lexicon import Noun, Verb
from micro.grammar.trees import Node, annotate
from micro.tasks import arguments, misorder

_GROUPS = ("person.kitchen", "person.work", "person.school", "person.sport", "person.trade")
_BEASTS = ("animal.pet", "animal.farm", "animal.wild", "animal.dog", "animal.bird")


def _pair(good: Node, bad: Node, *, mark: str = ".") -> list[Example]:
    return [Example((annotate(good, mark=mark),), 1), Example((annotate(bad, mark=mark),), 0)]


def _like(plural: bool) -> Node:
    """Something to agree with."""
    return Node("", "", "NOUN", plural=plural)


def _two_nouns(draw: Draw) -> tuple[Noun, Noun]:
    kinds = draw.pick((_GROUPS, _BEASTS))
    first = draw.noun(*kinds)
    second = draw.noun(*kinds, without=(first.lemma,))
    if "sheep" in (first.lemma, second.lemma) or "deer" in (first.lemma, second.lemma):
        raise NoWordError("a plural that doesn't show")
    return first, second


# -- agreement ---------------------------------------------------------------------------------


def _state(draw: Draw, noun: Noun, subject: Node, *, plural: bool, past: bool) -> Node:
    adjective = phrases.adjectival(draw.adjective(noun).lemma)
    return copular(subject, adjective, PAST if past else PRESENT, agreement=_like(plural))


def _agree(draw: Draw, noun: Noun, build: Callable[[], Node], plural: bool) -> list[Example]:
    """The same subject with the right and with the wrong number of the verb."""
    state = draw.random.getstate()
    rows = []
    for label, number in ((1, plural), (0, not plural)):
        draw.random.setstate(state)  # the same words again
        if draw.chance(0.5):
            root = _state(draw, noun, build(), plural=number, past=draw.chance(0.4))
        else:
            verb = draw.verb("intransitive", fits=lambda v: _does(v, noun))
            root = predicate(build(), verb, PRESENT, agreement=_like(number))
        rows.append(Example((annotate(root),), label))
    return rows


def _does(verb: Verb, noun: Noun) -> bool:
    people = noun.kind.startswith("person")
    return verb.subjects == ("person",) if people else noun.kind in verb.subjects


def _near(draw: Draw) -> list[Example]:
    """The dogs near the horse are hungry."""
    first, second = _two_nouns(draw)
    plural, attractor = draw.chance(0.5), draw.chance(0.5)
    preposition = draw.pick(("near", "behind", "beside"))

    def build() -> Node:
        place = phrases.prepositional(preposition, phrases.nominal(second, plural=attractor))
        return phrases.nominal(first, plural=plural).right("nmod", place)

    return _agree(draw, first, build, plural)


def _who(draw: Draw) -> list[Example]:
    """The chefs who helped the waiter are tired."""
    event = draw_reversible(draw, names=0.0)
    first, second = event.agent.word, event.theme.word if event.theme else None
    assert isinstance(first, Noun)
    assert isinstance(second, Noun)
    plural, attractor = draw.chance(0.5), draw.chance(0.5)
    who = "who" if first.kind.startswith("person") else "that"

    def build() -> Node:
        clause = predicate(relativizer(who, "nsubj"), event.verb)
        clause.right("obj", phrases.nominal(second, plural=attractor))
        return phrases.nominal(first, plural=plural).right("acl:relcl", clause)

    return _agree(draw, first, build, plural)


def _whom(draw: Draw) -> list[Example]:
    """The chefs that the waiter helped are tired."""
    event = draw_reversible(draw, names=0.0)
    first, second = event.agent.word, event.theme.word if event.theme else None
    assert isinstance(first, Noun)
    assert isinstance(second, Noun)
    plural, attractor = draw.chance(0.5), draw.chance(0.5)

    def build() -> Node:
        clause = predicate(phrases.nominal(second, plural=attractor), event.verb)
        clause.before.insert(0, relativizer("that", "obj"))
        return phrases.nominal(first, plural=plural).right("acl:relcl", clause)

    return _agree(draw, first, build, plural)


def _simple(draw: Draw) -> list[Example]:
    """The old dogs bark."""
    noun, _ = _two_nouns(draw)
    plural = draw.chance(0.5)
    adjective = draw.adjective(noun)
    return _agree(
        draw, noun, lambda: phrases.nominal(noun, plural=plural, adjectives=(adjective,)), plural
    )


def _there(draw: Draw) -> list[Example]:
    """There were three big dogs in the garden."""
    noun, _ = _two_nouns(draw)
    plural, past = draw.chance(0.5), draw.chance(0.5)
    determiner = draw.pick(("two", "three", "several", "many")) if plural else "a"
    adjectives = (draw.adjective(noun),)
    place = draw.noun(
        "place.room", "place.yard" if noun.kind.startswith("animal") else "place.room"
    )

    def said(number: bool) -> Node:
        there = Node("there", "there", "PRON", relation="expl")
        mood = PAST if past else PRESENT
        was = copular(there, Node("", "", "NOUN"), mood, agreement=_like(number)).before[-1]
        was.left("expl", there)
        was.relation = "root"
        thing = phrases.nominal(noun, determiner, plural=plural, adjectives=adjectives)
        was.right("nsubj", thing)
        return was.right("obl", phrases.prepositional("in", phrases.nominal(place)))

    return _pair(said(plural), said(not plural))


# -- reflexives and determiners -------------------------------------------------------------


def _reflexive(draw: Draw) -> list[Example]:
    """The girl who thanked the boys blamed herself."""
    verb = draw.verb("transitive", fits=lambda v: v.lemma in ("blame", "praise", "admire"))
    thanked = draw.verb("transitive", fits=lambda v: v.frame == "Social_interaction")
    gendered = [n for n in draw.lexicon.nouns if n.gender and n.kind != "person.relative"]
    first = draw.entry(gendered)
    second = draw.entry(gendered, lambda n: n.gender != first.gender)
    plural = draw.chance(0.3)
    right = "themselves" if plural else {"m": "himself", "f": "herself"}[first.gender or "m"]
    wrong = {"m": "himself", "f": "herself"}[second.gender or "m"]
    attractor = draw.chance(0.3) and not plural
    wrong = "themselves" if attractor else wrong
    simple = draw.chance(0.3)

    def said(form: str) -> Node:
        subject = phrases.nominal(first, plural=plural, entity=1)
        if not simple:
            clause = predicate(relativizer("who", "nsubj"), thanked)
            clause.right("obj", phrases.nominal(second, plural=attractor))
            subject.right("acl:relcl", clause)
        return predicate(subject, verb).right("obj", phrases.pronoun(form, entity=1))

    return _pair(said(right), said(wrong))


def _demonstrative(draw: Draw) -> list[Example]:
    """These old coats; not: these old coat."""
    event = draw_transitive(draw, names=0.7)
    assert event.theme is not None
    noun = event.theme.word
    if not isinstance(noun, Noun) or noun.mass or noun.plural == noun.lemma:
        raise NoWordError("countable things only")
    plural = draw.chance(0.5)
    words = ("these", "those", "several", "many") if plural else ("this", "that", "every", "a")
    determiner = draw.pick(words)
    adjective = draw.adjective(noun).lemma

    def said(number: bool) -> Node:
        theme = Thing(noun, determiner, plural=number, adjectives=(adjective,))
        return active(replace(event, theme=theme))

    return _pair(said(plural), said(not plural))


STRUCTURES = (
    Structure("near", _near, weight=4),
    Structure("who", _who, weight=4),
    Structure("whom", _whom, held_out=True, weight=3),
    Structure("simple", _simple, weight=2),
    Structure("there", _there, weight=2),
    Structure("reflexive", _reflexive, weight=3),
    Structure("demonstrative", _demonstrative, weight=3),
    Structure("intransitive-object", arguments.intransitive_object, weight=2),
    Structure("missing-object", arguments.missing_object, weight=2),
    Structure("no-passive", arguments.no_passive, held_out=True, weight=2),
    Structure("verb-form", arguments.verb_form, weight=3),
    Structure("case", arguments.case, weight=2),
    Structure("order", misorder.order, weight=5),
    Structure("question", misorder.question, weight=2),
)
