"""Who did what to whom: a meaning, and the sentences that say it.

An ``Event`` is the same in the active and in the passive; the functions below write it in the one
or the other way. Tasks about meaning compare events, tasks about form change the trees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from micro.grammar import phrases
from micro.grammar.clauses import PAST, Mood, agent_phrase, copular, predicate
from micro.grammar.draw import Draw
from micro.grammar.lexicon import Adjective, Noun, SmallWord, Verb
from micro.grammar.trees import Node


@dataclass(frozen=True, slots=True)
class Thing:
    """What a noun phrase means: a named person, or a noun with its determiner."""

    word: Noun | SmallWord
    determiner: str | None = "the"
    plural: bool = False
    adjectives: tuple[str, ...] = ()
    entity: int | None = None

    def phrase(self) -> Node:
        """The noun phrase; a new tree at every call."""
        if isinstance(self.word, SmallWord):
            return phrases.proper(self.word, entity=self.entity)
        return phrases.nominal(
            self.word,
            self.determiner,
            plural=self.plural,
            adjectives=self.adjectives,
            entity=self.entity,
        )

    @property
    def kind(self) -> str:
        """Its semantic class."""
        return self.word.kind if isinstance(self.word, Noun) else "person"

    @property
    def gender(self) -> str | None:
        """m, f, or None."""
        return self.word.gender

    def with_noun(self, noun: Noun) -> Thing:
        """The same phrase with another noun."""
        return replace(self, word=noun)


@dataclass(frozen=True, slots=True)
class Event:
    """A verb with its roles.

    ``setting`` is (preposition, phrase) of a place or a time, or ("", adverb).
    """

    verb: Verb
    agent: Thing
    theme: Thing | None = None
    recipient: Thing | None = None
    mood: Mood = PAST
    setting: tuple[str, Thing | str] | None = None

    def negated(self, negated: bool = True) -> Event:
        """The same event, denied (or stated)."""
        return replace(self, mood=replace(self.mood, negated=negated))

    def swapped(self) -> Event:
        """The other way round: agent and theme (or receiver) change places."""
        if self.recipient is not None:
            return replace(self, agent=self.recipient, recipient=self.agent)
        assert self.theme is not None
        return replace(self, agent=self.theme, theme=self.agent)


def active(event: Event, *, dative: str = "to") -> Node:
    """Anna gave the book to Tom; with ``dative="double"`` Anna gave Tom the book."""
    return _objects(predicate(event.agent.phrase(), event.verb, event.mood), event, dative=dative)


def _objects(head: Node, event: Event, *, dative: str = "to", theme: bool = True) -> Node:
    if event.recipient is not None and dative == "double":
        head.right("iobj", event.recipient.phrase())
    if event.theme is not None and theme:
        head.right("obj", event.theme.phrase())
    if event.recipient is not None and dative == "to":
        head.right("obl:to", phrases.prepositional("to", event.recipient.phrase()))
        head.roles["obl:to"] = event.verb.elements[2]
    return _settled(head, event)


def _settled(head: Node, event: Event) -> Node:
    if event.setting is None:
        return head
    if not event.setting[0]:
        return head.right("advmod", phrases.adverb(str(event.setting[1])))
    head.right("obl", setting_phrase(event.setting))
    return head


def setting_phrase(setting: tuple[str, Thing | str]) -> Node:
    """In the garden, on Monday, at noon."""
    preposition, place = setting
    if isinstance(place, Thing):
        phrase = place.phrase()
    elif preposition in ("on", "in"):
        phrase = phrases.proper(place)
    else:
        phrase = Node(place, place, "NOUN", "Number=Sing")
    return phrases.prepositional(preposition, phrase)


def passive(event: Event, *, with_agent: bool = True) -> Node:
    """The book was given to Tom by Anna."""
    assert event.theme is not None
    head = predicate(event.theme.phrase(), event.verb, event.mood, passive=True)
    if event.recipient is not None:
        head.right("obl:to", phrases.prepositional("to", event.recipient.phrase()))
        head.roles["obl:to"] = event.verb.elements[2]
    if with_agent:
        head.right("obl:agent", agent_phrase(event.agent.phrase()))
    return _settled(head, event)


def subject_cleft(event: Event) -> Node:
    """It was Anna who gave the book to Tom."""
    focus = event.agent.phrase()
    who = phrases.pronoun(
        "who" if event.agent.kind.startswith("person") else "that", plural=focus.plural
    )
    relative = _objects(predicate(who, event.verb, event.mood), event)
    return _cleft(focus, relative)


def object_cleft(event: Event) -> Node:
    """It was the book that Anna gave to Tom."""
    assert event.theme is not None
    focus = event.theme.phrase()
    relative = _objects(predicate(event.agent.phrase(), event.verb, event.mood), event, theme=False)
    person = event.theme.kind.startswith("person")
    relative.before.insert(0, relativizer("who" if person else "that", "obj"))
    return _cleft(focus, relative)


def _cleft(focus: Node, relative: Node) -> Node:
    it = Node("it", "it", "PRON", "Gender=Neut|Number=Sing|Person=3|PronType=Prs")
    head = copular(it, focus)
    it.relation = "expl"
    return head.right("acl:relcl", relative)


def relativizer(form: str, relation: str) -> Node:
    """Who or that, for a role in a relative clause."""
    return Node(form, form, "PRON", "PronType=Rel", relation=relation)


_PREPOSITIONS = {
    "on": ("farm", "island", "beach", "bridge"),
    "at": ("station", "airport", "harbor", "market", "stadium", "gym", "pool", "lake", "river"),
}


def place_of(noun: Noun) -> tuple[str, Thing | str]:
    """The setting of a place: in the garden, on the beach, at the station."""
    found = (prep for prep, nouns in _PREPOSITIONS.items() if noun.lemma in nouns)
    return next(found, "in"), Thing(noun)


def draw_person(draw: Draw, *, domain: str | None = None, names: float = 0.5) -> Thing:
    """A named person, or one of a profession that fits the domain."""
    if draw.chance(names):
        return Thing(draw.name())
    return Thing(draw.noun("person", domain=domain))


def draw_agent(
    draw: Draw, verb: Verb, *, names: float = 0.5, without: tuple[str, ...] = ()
) -> Thing:
    """Somebody (or an animal, a machine) that can do what the verb says."""
    if "person" in verb.subjects and draw.chance(names):
        return Thing(draw.name(without=without))
    return Thing(draw.noun(*verb.subjects, domain=verb.domain, without=without))


def draw_theme(
    draw: Draw, verb: Verb, *, names: float = 0.5, without: tuple[str, ...] = ()
) -> Thing:
    """What the verb can be done to."""
    if "person" in verb.objects and draw.chance(names):
        return Thing(draw.name(without=without))
    noun = draw.noun(*verb.objects, without=without)
    if noun.mass or noun.kind.startswith(("person", "place")):
        return Thing(noun)
    return Thing(noun, draw.pick(("the", "the", "a")))


def draw_transitive(draw: Draw, *, names: float = 0.5) -> Event:
    """An event with a doer and a thing."""
    verb = draw.verb("transitive", fits=lambda v: not reversible(v))
    return Event(verb, draw_agent(draw, verb, names=names), draw_theme(draw, verb, names=0.0))


def draw_intransitive(
    draw: Draw, *, names: float = 0.5, people: bool = False, stays: bool = False
) -> Event:
    """An event with a doer only; ``stays``: one that takes place somewhere, like sleeping."""
    verb = draw.verb(
        "intransitive",
        fits=lambda v: (
            (not people or v.subjects == ("person",)) and (not stays or v.frame != "Arriving")
        ),
    )
    return Event(verb, draw_agent(draw, verb, names=names))


def draw_ditransitive(draw: Draw, *, names: float = 0.7) -> Event:
    """Somebody gives somebody something."""
    verb = draw.verb("ditransitive")
    agent = draw_agent(draw, verb, names=names)
    receiver = draw_agent(draw, verb, names=names, without=(agent.word.lemma,))
    return Event(verb, agent, draw_theme(draw, verb), receiver)


def reversible(verb: Verb) -> bool:
    """Whether doer and thing may change places: helped, chased."""
    return verb.kind == "transitive" and verb.subjects == verb.objects


def draw_reversible(draw: Draw, *, names: float = 0.6) -> Event:
    """An event that also makes sense the other way round."""
    verb = draw.verb("transitive", fits=reversible)
    agent = draw_agent(draw, verb, names=names)
    # Like with like: Anna helped Tom, the chef helped the waiter.
    both_named = 1.0 if isinstance(agent.word, SmallWord) else 0.0
    theme = draw_agent(draw, verb, names=both_named, without=(agent.word.lemma,))
    return Event(verb, agent, theme)


def described(
    draw: Draw, thing: Thing, *, without: tuple[str, ...] = ()
) -> tuple[Thing, Adjective]:
    """The thing with a neutral adjective."""
    assert isinstance(thing.word, Noun)
    adjective = draw.adjective(thing.word, 0, without=without)
    return replace(thing, adjectives=(adjective.lemma,)), adjective
