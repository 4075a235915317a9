"""Opinions for micro-sentiment: scenes to speak about, and sentences with one opinion word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from micro.examples import Example
from micro.grammar import phrases
from micro.grammar.clauses import (
    PAST,
    PRESENT,
    Mood,
    coordinate,
    copular,
    predicate,
    that_clause,
)
from micro.grammar.draw import Draw
from micro.grammar.lexicon import Adjective, Noun
from micro.grammar.trees import Node, annotate

# What one speaks about on one occasion: things or places, and people.
SCENES = (
    (("food.dish", "food.snack", "food.bakery", "drink.hot", "place.eating"), ("person.kitchen",)),
    (("work.film", "work.show", "work.screen"), ("person.film",)),
    (("work.book", "work.text"), ("person.film",)),
    (("place.building", "event.trip", "place.town"), ("person.travel",)),
    (("thing.vehicle", "thing.boat", "event.trip"), ("person.travel",)),
    (("thing.device", "thing.machine", "event.meeting"), ("person.work",)),
    (("event.lesson", "work.book"), ("person.school", "person.staff")),
    (("event.match", "place.sport"), ("person.sport", "person.match")),
    (("place.outside", "animal.pet", "animal.dog"), ("person.garden",)),
    (("place.room", "thing.furniture"), ("person.trade",)),
    (("event.fun", "event.party", "food.bakery"), ("person.music", "person.kitchen")),
    (("work.song", "work.show", "thing.instrument"), ("person.music",)),
)


@dataclass(frozen=True)
class Scene:
    """Two nouns that one speaks about; the same noun twice where there is one."""

    draw: Draw
    first: Noun
    second: Noun

    def target(self, noun: Noun, *, entity: int | None = None) -> Node:
        """The soup, or this soup where nothing else is spoken about."""
        alone = self.first is self.second and entity is None
        this = alone and not noun.kind.startswith("person") and self.draw.chance(0.4)
        return phrases.nominal(noun, "this" if this else "the", entity=entity)


def scene_of(draw: Draw) -> Scene:
    """Two nouns of one occasion."""
    things, people = draw.pick(SCENES)
    first = draw.noun(*things)
    second = draw.noun(*people) if draw.chance(0.5) else draw.noun(*things, without=(first.lemma,))
    pair = (first, second) if draw.chance(0.5) else (second, first)
    return Scene(draw, *pair)


def is_(
    subject: Node, adjective: Adjective | str, mood: Mood = PAST, intensifier: str | None = None
) -> Node:
    """The subject was (not) (very) good."""
    word = adjective if isinstance(adjective, str) else adjective.lemma
    return copular(subject, phrases.intensified(word, intensifier), mood)


def row(root: Node, sign: int) -> Example:
    """A finished sentence with the label of its sign."""
    return Example((annotate(root),), label=int(sign > 0))


def speaker(draw: Draw) -> Node:
    """The one whose opinion counts."""
    return phrases.pronoun(draw.pick(("I", "we")))


_CROWDS = {
    "food": "person.diner",
    "film": "person.viewer",
    "music": "person.viewer",
    "travel": "person.traveler",
    "school": "person.student",
    "sport": "person.crowd",
}


def other_(draw: Draw, about: Noun) -> tuple[Node, str]:
    """Somebody else with an opinion, and the pronoun that takes it up."""
    if draw.chance(0.4):
        name = draw.name()
        return phrases.proper(name, entity=1), phrases.subject_pronoun(name.gender)
    if draw.chance(0.5):
        noun = draw.noun(_CROWDS.get(about.domain, "person.general"))
        return phrases.nominal(noun, "the", plural=True, entity=1), "they"
    fits = draw.entry(draw.lexicon.nouns, lambda n: n.kind == "person.relative" and bool(n.gender))
    return phrases.nominal(fits, "my", entity=1), phrases.subject_pronoun(fits.gender)


# -- one opinion word: kept or turned round ------------------------------------------------


def single(
    say: Callable[[Draw, Noun, Adjective], Node], turns: bool
) -> Callable[[Draw], list[Example]]:
    """Both polarities through one structure, which keeps or turns what the word says."""

    def build(draw: Draw) -> list[Example]:
        noun = scene_of(draw).first
        rows = []
        for sign in (1, -1):
            word = draw.adjective(noun, sign)
            rows.append(row(say(draw, noun, word), -sign if turns else sign))
        return rows

    return build


def plain(draw: Draw, noun: Noun, word: Adjective) -> Node:
    """The soup was very good."""
    strong = draw.intensifier(word) if draw.chance(0.5) else None
    return is_(Scene(draw, noun, noun).target(noun), word, intensifier=strong)


def negated(draw: Draw, noun: Noun, word: Adjective) -> Node:
    """The soup was not very good."""
    mood = Mood(negated=True, contracted=draw.chance(0.5))
    softeners = (None,) if word.strength == "extreme" else ("very", "particularly", None)
    softener = draw.pick(softeners)
    return is_(Scene(draw, noun, noun).target(noun), word, mood, softener)


def _think(draw: Draw, noun: Noun, word: Adjective, *, negated: bool) -> Node:
    verb = draw.verb("clausal", fits=lambda v: v.lemma in ("think", "believe"))
    mood = Mood(negated=negated, contracted=draw.chance(0.5))
    head = predicate(speaker(draw), verb, mood)
    inner = that_clause(
        is_(Scene(draw, noun, noun).target(noun), word), complementizer=draw.chance(0.5)
    )
    return head.right("ccomp", inner)


def thought(draw: Draw, noun: Noun, word: Adjective) -> Node:
    """I thought that the soup was good."""
    return _think(draw, noun, word, negated=False)


def not_thought(draw: Draw, noun: Noun, word: Adjective) -> Node:
    """I didn't think that the soup was good."""
    return _think(draw, noun, word, negated=True)


def nobody(draw: Draw, noun: Noun, word: Adjective) -> Node:
    """Nobody thought that the soup was good."""
    verb = draw.verb("clausal", fits=lambda v: v.lemma in ("think", "say"))
    head = predicate(phrases.pronoun("nobody"), verb)
    return head.right("ccomp", that_clause(is_(Scene(draw, noun, noun).target(noun), word)))


def everyone(draw: Draw, noun: Noun, word: Adjective) -> Node:
    """Everyone thought that the soup was good."""
    verb = draw.verb("clausal", fits=lambda v: v.lemma in ("think", "say"))
    head = predicate(phrases.pronoun("everyone"), verb)
    return head.right("ccomp", that_clause(is_(Scene(draw, noun, noun).target(noun), word)))


def doubt(draw: Draw, noun: Noun, word: Adjective) -> Node:
    """I doubt that the soup was good."""
    head = predicate(speaker(draw), draw.verb("doubting"), PRESENT)
    return head.right("ccomp", that_clause(is_(Scene(draw, noun, noun).target(noun), word)))


def know(draw: Draw, noun: Noun, word: Adjective) -> Node:
    """I know that the soup was good."""
    verb = draw.verb("clausal", fits=lambda v: v.lemma in ("know", "believe"))
    head = predicate(speaker(draw), verb, PRESENT)
    return head.right("ccomp", that_clause(is_(Scene(draw, noun, noun).target(noun), word)))


def far_from(draw: Draw, noun: Noun, word: Adjective) -> Node:
    """The soup was far from good, was anything but good."""
    adjective = phrases.adjectival(word.lemma)
    if draw.chance(0.5):
        adjective.left("advmod", phrases.adverb("far").right("fixed", _word("from", "ADP")))
    else:
        anything = _word("anything", "PRON").right("fixed", _word("but", "CCONJ"))
        adjective.left("advmod", anything)
    return copular(Scene(draw, noun, noun).target(noun), adjective)


def _word(form: str, upos: str) -> Node:
    return Node(form, form, upos)


def _could_have(draw: Draw, noun: Noun, word: Adjective, *, negated: bool) -> Node:
    """The film could have been good, but it wasn't (or: and it was)."""
    mood = Mood(modal=draw.pick(("could", "might")), perfect=True)
    target = phrases.nominal(noun, "the", entity=1)
    first = is_(target, word, mood)
    pronoun = _took_up(draw, noun)
    was = Node("was", "be", "AUX", "Mood=Ind|Number=Sing|Person=3|Tense=Past|VerbForm=Fin")
    was.left("nsubj", pronoun)
    if negated:
        was.right("advmod", Node("n't", "not", "PART", "Polarity=Neg", joined=True))
    return coordinate(first, was, "but" if negated else "and")


def _took_up(draw: Draw, noun: Noun) -> Node:
    person = noun.kind.startswith("person")
    gender = noun.gender or (draw.pick(("m", "f")) if person else None)
    return phrases.pronoun(phrases.subject_pronoun(gender), entity=1)


def could_but(draw: Draw, noun: Noun, word: Adjective) -> Node:
    """The film could have been good, but it wasn't."""
    return _could_have(draw, noun, word, negated=True)


def could_and(draw: Draw, noun: Noun, word: Adjective) -> Node:
    """The film could have been good, and it was."""
    return _could_have(draw, noun, word, negated=False)


def _said(draw: Draw, noun: Noun, word: Adjective, *, right: bool) -> Node:
    """Anna called the film dull, but she was wrong / and she was right."""
    other, pronoun = other_(draw, noun)
    called = predicate(other, draw.verb("calling", "finding"))
    called.right("obj", Scene(draw, noun, noun).target(noun))
    called.right("xcomp", phrases.adjectival(word.lemma))
    taken = phrases.pronoun(pronoun, entity=1)
    verdict = is_(taken, "right" if right else "wrong", intensifier=None)
    return coordinate(called, verdict, "and" if right else "but")


def said_right(draw: Draw, noun: Noun, word: Adjective) -> Node:
    """Anna called the film dull, and she was right."""
    return _said(draw, noun, word, right=True)


def said_wrong(draw: Draw, noun: Noun, word: Adjective) -> Node:
    """Anna called the film dull, but she was wrong."""
    return _said(draw, noun, word, right=False)


def neither(draw: Draw, noun: Noun, word: Adjective) -> Node:
    """The film was neither dull nor silly."""
    first = phrases.adjectival(word.lemma).left("cc:preconj", _word("neither", "CCONJ"))
    other = phrases.adjectival(draw.adjective(noun, word.polarity, without=(word.lemma,)).lemma)
    head = copular(Scene(draw, noun, noun).target(noun), first)
    return phrases.joined(head, other, "nor")
