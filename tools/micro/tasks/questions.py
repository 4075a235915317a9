"""Questions about events: who, what, to whom, where, when."""

from __future__ import annotations

from micro.grammar import phrases
from micro.grammar.clauses import predicate
from micro.grammar.events import Event, active
from micro.grammar.trees import Node


def who(event: Event) -> Node:
    """Who fed the cat? (the doer is asked for)."""
    head = active(event)
    place = next(i for i, node in enumerate(head.before) if node.relation == "nsubj")
    head.before[place] = phrases.pronoun("who")
    head.before[place].relation = "nsubj"
    return head


def what(event: Event) -> Node:
    """What did Anna feed? Who did Anna help? (the thing is asked for)."""
    assert event.theme is not None
    head = _inverted(event)
    if event.recipient is not None:
        head.right("obl:to", phrases.prepositional("to", event.recipient.phrase()))
    word = phrases.pronoun("who" if event.theme.kind.startswith("person") else "what")
    word.relation = "obj"
    head.before.insert(0, word)
    return head


def to_whom(event: Event) -> Node:
    """To whom did Anna give the book? (the receiver is asked for)."""
    assert event.theme is not None
    head = _inverted(event).right("obj", event.theme.phrase())
    whom = phrases.prepositional("to", phrases.pronoun("whom"))
    whom.relation = "obl:to"
    head.before.insert(0, whom)
    return head


def adverbial(event: Event, word: str) -> Node:
    """Where did Anna sleep? (the setting is asked for)."""
    head = _inverted(event)
    head.before.insert(0, Node(word, word, "ADV", "PronType=Int", relation="advmod"))
    return head


def _inverted(event: Event) -> Node:
    head = predicate(event.agent.phrase(), event.verb, event.mood, question=True)
    if event.recipient is not None:
        head.roles["obl:to"] = event.verb.elements[2]
    return head
