"""Word order for micro-acceptability: a tree as it should be, and with two parts exchanged."""

from __future__ import annotations

from dataclasses import replace

from micro.examples import Example
from micro.grammar import phrases
from micro.grammar.clauses import Mood, predicate
from micro.grammar.draw import Draw, NoWordError
from micro.grammar.events import Event, Thing, active, described, draw_transitive
from micro.grammar.lexicon import Noun
from micro.grammar.trees import Node, annotate

_MOODS = (
    Mood(),
    Mood(negated=True),
    Mood(perfect=True),
    Mood(modal="will"),
    Mood("past", progressive=True),
    Mood("present", perfect=True, progressive=True),
)


def order(draw: Draw) -> list[Example]:
    """Anna wore the red coat; not: Anna wore the coat red, nor: Anna the red coat wore."""
    event = draw_transitive(draw)
    assert event.theme is not None
    if not isinstance(event.theme.word, Noun):
        raise NoWordError("things only")
    theme, _ = described(draw, event.theme)
    event = replace(event, theme=theme, mood=draw.pick(_MOODS))
    good, bad = active(event), active(event)
    draw.pick((_adjective_last, _object_first, _verb_first, _auxiliary_late))(bad)
    return [Example((annotate(good),), 1), Example((annotate(bad),), 0)]


def _adjective_last(head: Node) -> None:
    noun = next(node for node in head.after if node.relation == "obj")
    adjective = noun.before.pop()
    noun.after.insert(0, adjective)


def _object_first(head: Node) -> None:
    noun = next(node for node in head.after if node.relation == "obj")
    head.after.remove(noun)
    head.before.append(noun)


def _verb_first(head: Node) -> None:
    subject = next(node for node in head.before if node.relation == "nsubj")
    head.before.remove(subject)
    head.after.insert(0, subject)


def _auxiliary_late(head: Node) -> None:
    """Will not → not will; without an auxiliary the article goes after its noun."""
    auxiliaries = [node for node in head.before if node.relation in ("aux", "advmod")]
    if not auxiliaries:
        noun = next(node for node in head.after if node.relation == "obj")
        if len(noun.before) < 2:
            raise NoWordError("nothing to exchange")
        noun.before.reverse()
        return
    head.before.remove(auxiliaries[0])
    head.after.insert(0, auxiliaries[0])


def question(draw: Draw) -> list[Example]:
    """What did Anna buy; not: what Anna did buy."""
    event = draw_transitive(draw, names=0.7)
    mood = draw.pick((Mood(), Mood("present"), Mood(perfect=True), Mood(modal="will")))
    word = draw.pick(("what", "why", "when", "where"))
    return [
        Example((annotate(_asked(event, mood, word), mark="?"),), 1),
        Example((annotate(_asked(event, mood, word, inverted=False), mark="?"),), 0),
    ]


def _asked(event: Event, mood: Mood, word: str, *, inverted: bool = True) -> Node:
    head = predicate(event.agent.phrase(), event.verb, mood, question=True)
    if not inverted:
        head.before[0], head.before[1] = head.before[1], head.before[0]
    if word == "what":
        head.before.insert(0, phrases.pronoun("what"))
        head.before[0].relation = "obj"
        return head
    head.before.insert(0, Node(word, word, "ADV", "PronType=Int", relation="advmod"))
    assert isinstance(event.theme, Thing)
    return head.right("obj", event.theme.phrase())
