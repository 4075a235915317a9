"""micro-sentiment: does the speaker approve? Structure decides, not the words.

Every structure yields both labels with the same kinds of words, and every opinion word is as
often in approving as in disapproving sentences, so that counting words tells next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from micro.examples import Example, Structure
from micro.grammar import phrases
from micro.grammar.clauses import (
    PAST,
    Mood,
    adverbial,
    coordinate,
    predicate,
)
from micro.grammar.draw import Draw
from micro.grammar.lexicon import Adjective, goes_with
from micro.grammar.trees import Node, comma
from micro.tasks import opinions
from micro.tasks.opinions import SCENES, Scene, is_, other_, row, scene_of, speaker

# -- verbs of liking --------------------------------------------------------------------------


def _liking(draw: Draw) -> list[Example]:
    """We loved the soup; nobody loved the soup; we did not hate the soup."""
    noun = scene_of(draw).first
    rows = []
    for kind, sign in (("liking", 1), ("disliking", -1)):
        verb = draw.verb(kind, fits=lambda v: goes_with(noun.kind, v.objects))
        for negated in (False, True):
            nobody = negated and draw.chance(0.5)
            if nobody:
                subject, mood = phrases.pronoun("nobody"), PAST
            else:
                subject = speaker(draw)
                mood = Mood(negated=negated, contracted=draw.chance(0.5))
            head = predicate(subject, verb, mood)
            head.right("obj", Scene(draw, noun, noun).target(noun))
            rows.append(row(head, -sign if negated else sign))
    return rows


def _pleasing(draw: Draw) -> list[Example]:
    """The film never bored us."""
    noun = scene_of(draw).first
    rows = []
    for kind, sign in (("pleasing", 1), ("displeasing", -1)):
        verb = draw.verb(kind, fits=lambda v: goes_with(noun.kind, v.subjects))
        for negated in (False, True):
            never = negated and draw.chance(0.5)
            mood = Mood(negated=negated and not never, contracted=draw.chance(0.5))
            head = predicate(Scene(draw, noun, noun).target(noun), verb, mood)
            if never:
                head.left("advmod", phrases.adverb("never"))
            head.right("obj", phrases.pronoun(draw.pick(("me", "us"))))
            rows.append(row(head, -sign if negated else sign))
    return rows


# -- two opinion words: which one counts? ---------------------------------------------------


def _double(
    say: Callable[[Scene, Adjective, Adjective], Node],
    *,
    one_noun: bool = False,
    strength: str | None = None,
) -> Callable[[Draw], list[Example]]:
    """``say(scene, weak, strong)``: the first word yields, the second decides. Both ways."""

    def build(draw: Draw) -> list[Example]:
        scene = scene_of(draw)
        if one_noun:
            scene = Scene(draw, scene.first, scene.first)
        rows = []
        for sign in (1, -1):
            yielding = draw.adjective(scene.first, -sign, strength=strength)
            deciding = draw.adjective(scene.second, sign)
            rows.append(row(say(scene, yielding, deciding), sign))
        return rows

    return build


def _but(scene: Scene, yielding: Adjective, deciding: Adjective) -> Node:
    first = is_(scene.target(scene.first), yielding)
    return coordinate(first, is_(scene.target(scene.second), deciding), "but")


def _although_first(scene: Scene, yielding: Adjective, deciding: Adjective) -> Node:
    conjunction = scene.draw.pick(("although", "though", "while"))
    main = is_(scene.target(scene.second), deciding)
    side = adverbial(is_(scene.target(scene.first), yielding), conjunction, first=True)
    side.relation = "advcl"
    main.before.insert(0, side)
    return main


def _although_last(scene: Scene, yielding: Adjective, deciding: Adjective) -> Node:
    conjunction = scene.draw.pick(("although", "though"))
    side = adverbial(is_(scene.target(scene.first), yielding), conjunction)
    side.before.insert(0, Node(",", ",", "PUNCT", relation="punct", joined=True))
    return is_(scene.target(scene.second), deciding).right("advcl", side)


def _despite(scene: Scene, yielding: Adjective, deciding: Adjective) -> Node:
    main = is_(scene.target(scene.second), deciding)
    phrase = phrases.nominal(scene.first, "the", adjectives=(yielding,))
    phrase = phrases.prepositional("despite", phrase).right("punct", comma())
    phrase.relation = "obl"
    main.before.insert(0, phrase)
    return main


def _not_but(scene: Scene, yielding: Adjective, deciding: Adjective) -> Node:
    head = is_(scene.target(scene.first), yielding, Mood(negated=True))
    return phrases.joined(head, phrases.adjectival(deciding.lemma), "but")


def _comma_not(scene: Scene, yielding: Adjective, deciding: Adjective) -> Node:
    other = phrases.adjectival(yielding.lemma).left("punct", comma())
    other.left("advmod", Node("not", "not", "PART", "Polarity=Neg"))
    return is_(scene.target(scene.first), deciding).right("conj", other)


def _degrees(scene: Scene, yielding: Adjective, deciding: Adjective) -> Node:
    """The room was a bit small and the staff was absolutely wonderful, in either order."""
    draw = scene.draw
    weak = is_(scene.target(scene.first), yielding, intensifier=draw.small("weak"))
    strong = is_(scene.target(scene.second), deciding, intensifier=draw.intensifier(deciding))
    return coordinate(weak, strong) if draw.chance(0.5) else coordinate(strong, weak)


def _mine_last(scene: Scene, yielding: Adjective, deciding: Adjective) -> Node:
    return _opinions(scene, yielding, deciding, mine_first=False)


def _mine_first(scene: Scene, yielding: Adjective, deciding: Adjective) -> Node:
    return _opinions(scene, yielding, deciding, mine_first=True)


def _opinions(scene: Scene, yielding: Adjective, deciding: Adjective, *, mine_first: bool) -> Node:
    """The critics called the film dull, but I found it funny: my own opinion counts."""
    draw, noun = scene.draw, scene.first
    person = noun.kind.startswith("person")
    gender = noun.gender or ("m" if person else None)
    named = phrases.nominal(noun, "the", entity=1)
    taken_up = phrases.pronoun(phrases.object_pronoun(gender), entity=1)
    other, _ = other_(draw, noun)
    other.entity = None
    theirs = predicate(other, draw.verb("calling", "finding"))
    mine = predicate(speaker(draw), draw.verb("finding"))
    theirs.right("obj", taken_up if mine_first else named)
    theirs.right("xcomp", phrases.adjectival(yielding.lemma))
    mine.right("obj", named if mine_first else taken_up)
    mine.right("xcomp", phrases.adjectival(deciding.lemma))
    return coordinate(mine, theirs, "but") if mine_first else coordinate(theirs, mine, "but")


def _inside(draw: Draw) -> list[Example]:
    """The hotel that the rude guide recommended was lovely: the main clause counts."""
    things, people = draw.pick(SCENES)
    thing, person = draw.noun(*things), draw.noun(*people)
    rows = []
    for sign in (1, -1):
        yielding = draw.adjective(person, -sign)
        advisor = phrases.nominal(person, "the", adjectives=(yielding,))
        clause = predicate(advisor, draw.verb("suggesting"))
        clause.before.insert(0, Node("that", "that", "PRON", "PronType=Rel", relation="obj"))
        subject = phrases.nominal(thing, "the").right("acl:relcl", clause)
        rows.append(row(is_(subject, draw.adjective(thing, sign)), sign))
    return rows


STRUCTURES = (
    Structure("plain", opinions.single(opinions.plain, turns=False), weight=2),
    Structure("not", opinions.single(opinions.negated, turns=True)),
    Structure("thought", opinions.single(opinions.thought, turns=False)),
    Structure("not-thought", opinions.single(opinions.not_thought, turns=True), weight=2),
    Structure("everyone", opinions.single(opinions.everyone, turns=False)),
    Structure("nobody", opinions.single(opinions.nobody, turns=True)),
    Structure("know", opinions.single(opinions.know, turns=False)),
    Structure("doubt", opinions.single(opinions.doubt, turns=True), weight=2),
    Structure("far-from", opinions.single(opinions.far_from, turns=True), held_out=True),
    Structure("could-have-but", opinions.single(opinions.could_but, turns=True), weight=2),
    Structure("could-have-and", opinions.single(opinions.could_and, turns=False), weight=2),
    Structure("said-right", opinions.single(opinions.said_right, turns=False), weight=2),
    Structure("said-wrong", opinions.single(opinions.said_wrong, turns=True), weight=2),
    Structure("neither", opinions.single(opinions.neither, turns=True), held_out=True),
    Structure("liking", _liking, weight=2),
    Structure("pleasing", _pleasing, weight=2),
    Structure("but", _double(_but), weight=3),
    Structure("although-first", _double(_although_first), weight=2),
    Structure("although-last", _double(_although_last), weight=2),
    Structure("despite", _double(_despite), held_out=True),
    Structure("not-but", _double(_not_but, one_noun=True), weight=2),
    Structure("comma-not", _double(_comma_not, one_noun=True), held_out=True),
    Structure("degrees", _double(_degrees, strength="mild"), weight=2),
    Structure("inside", _inside, weight=2),
    Structure("mine-last", _double(_mine_last, one_noun=True)),
    Structure("mine-first", _double(_mine_first, one_noun=True)),
)
