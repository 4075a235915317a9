"""Verbs for micro-acceptability: what they ask for, their forms, and the case of pronouns."""

from __future__ import annotations

from dataclasses import replace

from micro.examples import Example
from micro.grammar import phrases
from micro.grammar.clauses import Mood, predicate
from micro.grammar.draw import Draw, NoWordError
from micro.grammar.events import (
    Event,
    active,
    draw_agent,
    draw_person,
    draw_transitive,
)
from micro.grammar.lexicon import Verb
from micro.grammar.trees import Node, annotate

_STRICTLY_INTRANSITIVE = (
    "sleep", "yawn", "snore", "nap", "sneeze", "giggle", "arrive", "smile", "frown", "blush",
    "kneel", "laugh", "nod",
)  # fmt: skip
_NEEDS_OBJECT = (
    "repair", "fix", "devour", "lift", "use", "hold", "wear", "thank", "greet", "blame", "defeat",
    "reach", "sharpen", "describe", "mend", "install", "rescue", "carry", "find", "assemble",
)  # fmt: skip


def _pair(good: Node, bad: Node) -> list[Example]:
    return [Example((annotate(good),), 1), Example((annotate(bad),), 0)]


def intransitive_object(draw: Draw) -> list[Example]:
    """The pupil read the poem; not: the pupil slept the poem."""
    event = draw_transitive(draw)
    other = draw.verb("intransitive", fits=lambda v: v.lemma in _STRICTLY_INTRANSITIVE)
    if event.verb.subjects != ("person",):
        raise NoWordError("people only")
    return _pair(active(event), active(replace(event, verb=other)))


def missing_object(draw: Draw) -> list[Example]:
    """The chef slept on Monday; not: the chef fixed on Monday."""
    needing = draw.verb("transitive", fits=lambda v: v.lemma in _NEEDS_OBJECT)
    verb = draw.verb("intransitive", fits=lambda v: v.subjects == ("person",))
    agent = draw_person(draw, domain=needing.domain)
    setting = draw.pick((("on", draw.small("weekday")), ("before", draw.small("occasion"))))
    event = Event(verb, agent, setting=setting)
    return _pair(active(event), active(replace(event, verb=needing)))


def no_passive(draw: Draw) -> list[Example]:
    """The poem was read by Anna; not: the poem was slept by Anna."""
    event = draw_transitive(draw)
    other = draw.verb("intransitive", fits=lambda v: v.lemma in _STRICTLY_INTRANSITIVE)
    assert event.theme is not None
    theme = replace(event.theme, determiner="the")

    def said(verb: Verb) -> Node:
        head = predicate(theme.phrase(), verb, passive=True)
        return head.right("obl:agent", phrases.prepositional("by", event.agent.phrase()))

    return _pair(said(event.verb), said(other))


def verb_form(draw: Draw) -> list[Example]:
    """Anna has often eaten the soup; not: Anna has often ate the soup."""
    event = draw_transitive(draw)
    verb = event.verb
    mood, wrong = draw.pick(
        (
            (Mood(perfect=True), verb.lemma),
            (Mood(perfect=True), verb.ing),
            (Mood(negated=True), verb.past),
            (Mood("present", progressive=True), verb.lemma),
            (Mood(modal="will"), verb.past),
            (Mood(modal="can"), verb.ing),
        )
    )
    adverb = draw.small("frequency")

    def said(form: str | None) -> Node:
        head = active(replace(event, mood=mood))
        if not mood.negated:
            head.left("advmod", phrases.adverb(adverb))
        head.form = form or head.form
        return head

    if said(None).form == wrong:
        raise NoWordError("both forms are the same")
    return _pair(said(None), said(wrong))


def case(draw: Draw) -> list[Example]:
    """She helped him; not: she helped he."""
    verb = draw.verb("transitive", fits=lambda v: v.subjects == v.objects == ("person",))
    subjects, objects = ("he", "she", "they", "we", "I"), ("him", "her", "them", "us", "me")
    place = draw.random.randrange(5)
    other = draw_agent(draw, verb)
    mood = Mood(negated=draw.chance(0.4))

    def said(form: str, *, is_subject: bool) -> Node:
        word = phrases.pronoun(form)
        first, second = (word, other.phrase()) if is_subject else (other.phrase(), word)
        return predicate(first, verb, mood).right("obj", second)

    if draw.chance(0.5):
        return _pair(said(subjects[place], is_subject=True), said(objects[place], is_subject=True))
    return _pair(said(objects[place], is_subject=False), said(subjects[place], is_subject=False))
