"""micro-paraphrase: do two sentences say the same.

Both rows of a set have the same words; only who does what to whom, what is denied, or how many
there are tells a paraphrase from its neighbour.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from micro.examples import Example, Structure
from micro.grammar import phrases
from micro.grammar.clauses import Mood, adverbial, coordinate, copular, predicate
from micro.grammar.draw import Draw, NoWordError
from micro.grammar.events import (
    Event,
    Thing,
    active,
    described,
    draw_agent,
    draw_ditransitive,
    draw_intransitive,
    draw_person,
    draw_reversible,
    draw_theme,
    object_cleft,
    passive,
    relativizer,
    subject_cleft,
)
from micro.grammar.lexicon import Noun, SmallWord, Verb, goes_with
from micro.grammar.trees import Node, annotate

Say = Callable[[Event], Node]


def _set(first: Callable[[], Node], same: Node, other: Node) -> list[Example]:
    """A paraphrase and a near miss of the same first sentence."""
    return [
        Example((annotate(first()),), 1, (annotate(same),)),
        Example((annotate(first()),), 0, (annotate(other),)),
    ]


def _two_ways(draw: Draw, ways: tuple[Say, ...]) -> tuple[Say, Say]:
    first = draw.pick(ways)
    return first, draw.pick([way for way in ways if way is not first])


def _double_object(event: Event) -> Node:
    return active(event, dative="double")


def _voice(draw: Draw) -> list[Example]:
    """Anna helped Tom; Tom was helped by Anna; Anna was helped by Tom."""
    event = draw_reversible(draw, names=0.9).negated(draw.chance(0.3))
    first, second = _two_ways(draw, (active, passive))
    return _set(lambda: first(event), second(event), second(event.swapped()))


def _cleft(draw: Draw) -> list[Example]:
    """It was Anna who helped Tom; it was Tom who Anna helped."""
    event = draw_reversible(draw, names=0.95)
    plain: tuple[Say, ...] = (active, passive)
    clefts: tuple[Say, ...] = (subject_cleft, object_cleft)
    first, second = draw.pick(plain), draw.pick(clefts)
    if draw.chance(0.5):
        return _set(lambda: first(event), second(event), second(event.swapped()))
    return _set(lambda: second(event), first(event), first(event.swapped()))


def _dative(draw: Draw) -> list[Example]:
    """Anna gave Tom the book; Anna gave the book to Tom; Tom gave the book to Anna."""
    event = draw_ditransitive(draw, names=0.9)
    first, second = _two_ways(draw, (active, _double_object))
    return _set(lambda: first(event), second(event), second(event.swapped()))


def _dative_passive(draw: Draw) -> list[Example]:
    """Anna gave Tom the book; the book was given to Anna by Tom."""
    event = draw_ditransitive(draw, names=0.9)
    first = draw.pick((active, _double_object))
    return _set(lambda: first(event), passive(event), passive(event.swapped()))


def _number(draw: Draw) -> list[Example]:
    """The dogs chased the cat; the cat was chased by the dogs; the cats were chased by the dog."""
    event = draw_reversible(draw, names=0.0)
    assert event.theme is not None
    many = draw.chance(0.5)
    event = replace(
        event, agent=replace(event.agent, plural=many), theme=replace(event.theme, plural=not many)
    )
    assert event.theme is not None
    other = replace(
        event, agent=replace(event.agent, plural=not many), theme=replace(event.theme, plural=many)
    )
    first, second = _two_ways(draw, (active, passive))
    return _set(lambda: first(event), second(event), second(other))


def _adjectives(draw: Draw) -> list[Example]:
    """The old chef helped the young waiter: whose adjective is it."""
    event = draw_reversible(draw, names=0.0)
    assert event.theme is not None
    agent, adjective = described(draw, event.agent)
    theme, other = described(draw, event.theme, without=(adjective.lemma,))
    event = replace(event, agent=agent, theme=theme)
    crossed = replace(
        event,
        agent=replace(agent, adjectives=(other.lemma,)),
        theme=replace(theme, adjectives=(adjective.lemma,)),
    )
    first, second = _two_ways(draw, (active, passive))
    return _set(lambda: first(event), second(event), second(crossed))


def _order(draw: Draw) -> list[Example]:
    """Anna left before Tom arrived; Tom arrived after Anna left; Tom left after Anna arrived."""
    anna, tom, verbs = _two_people(draw)

    def said(first: Event, conjunction: str, second: Event) -> Node:
        return active(first).right("advcl", adverbial(active(second), conjunction))

    earlier, later = Event(verbs[0], anna), Event(verbs[1], tom)
    crossed = Event(verbs[0], tom), Event(verbs[1], anna)
    if draw.chance(0.5):
        return _set(
            lambda: said(earlier, "before", later),
            said(later, "after", earlier),
            said(crossed[1], "after", crossed[0]),
        )
    return _set(
        lambda: said(later, "after", earlier),
        said(earlier, "before", later),
        said(crossed[0], "before", crossed[1]),
    )


def _two_people(draw: Draw) -> tuple[Thing, Thing, list[Verb]]:
    anna = draw_person(draw, names=0.95)
    tom = draw_person(draw, names=float(isinstance(anna.word, SmallWord)))
    verbs = [draw_intransitive(draw, people=True).verb for _ in range(2)]
    if anna == tom or verbs[0].lemma == verbs[1].lemma:
        raise NoWordError("the same person or deed twice")
    return anna, tom, verbs


def _coordination(draw: Draw) -> list[Example]:
    """Anna laughed and Tom cried; Tom cried and Anna laughed; Tom laughed and Anna cried."""
    anna, tom, verbs = _two_people(draw)
    moods = (Mood(negated=True), Mood()) if draw.chance(0.2) else (Mood(), Mood())

    def said(*deeds: tuple[Thing, int]) -> Node:
        first, second = (active(Event(verbs[i], who, mood=moods[i])) for who, i in deeds)
        return coordinate(first, second, pause=False)

    return _set(
        lambda: said((anna, 0), (tom, 1)), said((tom, 1), (anna, 0)), said((tom, 0), (anna, 1))
    )


def _comparison(draw: Draw) -> list[Example]:
    """Anna was taller than Tom; Tom was shorter than Anna; Anna was shorter than Tom."""
    pairs = (("tall", "short"), ("old", "young"), ("strong", "weak"), ("quick", "slow"))
    word, opposite = draw.pick(pairs) if draw.chance(0.5) else draw.pick(pairs)[::-1]
    anna, tom, _ = _two_people(draw)

    def than(more: Thing, comparative: str, less: Thing) -> Node:
        return copular(more.phrase(), phrases.comparison(comparative, less.phrase()))

    return _set(lambda: than(anna, word, tom), than(tom, opposite, anna), than(anna, opposite, tom))


def _synonyms(draw: Draw) -> list[Example]:
    """Anna bought the couch; Anna bought the sofa; Anna bought the bench."""
    same = draw.lexicon.synonyms
    doubled = [n for n in draw.lexicon.nouns if n.lemma in same and draw.allows(n) and not n.mass]
    verb = draw.verb(
        "transitive", fits=lambda v: any(goes_with(n.kind, v.objects) for n in doubled)
    )
    themes = _objects_of(draw, verb)
    word = draw.entry(themes, lambda n: n.lemma in same)
    miss = draw.entry(themes, lambda n: n.lemma not in (word.lemma, same[word.lemma]))
    event = Event(verb, draw_agent(draw, verb, names=0.9), Thing(word))
    twin = replace(word, lemma=same[word.lemma], plural=same[word.lemma] + "s")
    ways: tuple[Say, ...] = (active, passive)
    say = draw.pick(ways)
    # The second sentence is the same in both rows: a synonym by itself tells nothing.
    return [
        Example(
            (annotate(active(replace(event, theme=Thing(noun)))),),
            label,
            (annotate(say(replace(event, theme=Thing(twin)))),),
        )
        for noun, label in ((word, 1), (miss, 0))
    ]


def _objects_of(draw: Draw, verb: Verb) -> list[Noun]:
    nouns = (n for n in draw.lexicon.nouns if goes_with(n.kind, verb.objects))
    return [n for n in nouns if draw.allows(n) and not n.mass]


def _scope(draw: Draw) -> list[Example]:
    """Anna did not help the boy who laughed; Anna helped the boy who did not laugh."""
    event = draw_reversible(draw, names=0.9)
    doing = draw_intransitive(draw, people=True).verb
    boy = Thing(draw.noun("person.general", "person.work", "person.kitchen"))
    if not event.agent.kind.startswith("person"):
        raise NoWordError("people only")

    def said(*, outer: bool, voice: str) -> Node:
        who = boy.phrase()
        inner = predicate(relativizer("who", "nsubj"), doing, Mood(negated=not outer))
        who.right("acl:relcl", inner)
        mood = Mood(negated=outer)
        if voice == "active":
            return predicate(event.agent.phrase(), event.verb, mood).right("obj", who)
        head = predicate(who, event.verb, mood, passive=True)
        return head.right("obl:agent", phrases.prepositional("by", event.agent.phrase()))

    outer = draw.chance(0.5)
    first, second = ("active", "passive") if draw.chance(0.5) else ("passive", "active")
    return _set(
        lambda: said(outer=outer, voice=first),
        said(outer=outer, voice=second),
        said(outer=not outer, voice=second),
    )


def _owners(draw: Draw) -> list[Example]:
    """Tom washed Anna's car; Anna's car was washed by Tom; Tom's car was washed by Anna."""
    anna, tom, _ = _two_people(draw)
    verb = draw.verb(
        "transitive",
        fits=lambda v: v.subjects == ("person",) and v.objects[0].startswith(("thing", "animal")),
    )
    noun = draw_theme(draw, verb).word
    if not isinstance(noun, Noun) or not isinstance(anna.word, SmallWord):
        raise NoWordError("named owners of things only")

    def said(doer: Thing, owner: Thing, *, by: bool) -> Node:
        thing = phrases.possessed(noun, owner.phrase())
        if not by:
            return predicate(doer.phrase(), verb).right("obj", thing)
        head = predicate(thing, verb, passive=True)
        return head.right("obl:agent", phrases.prepositional("by", doer.phrase()))

    by = draw.chance(0.5)
    return _set(
        lambda: said(tom, anna, by=by), said(tom, anna, by=not by), said(anna, tom, by=not by)
    )


STRUCTURES = (
    Structure("voice", _voice, weight=11),
    Structure("cleft", _cleft, weight=3),
    Structure("dative", _dative, weight=2),
    Structure("dative-passive", _dative_passive, held_out=True, weight=2),
    Structure("number", _number),
    Structure("adjectives", _adjectives),
    Structure("order", _order, weight=4),
    Structure("coordination", _coordination, weight=2),
    Structure("comparison", _comparison, weight=2),
    Structure("synonyms", _synonyms, weight=4),
    Structure("scope", _scope),
    Structure("owners", _owners, held_out=True, weight=2),
)
