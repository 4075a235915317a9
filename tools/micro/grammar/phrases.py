"""Noun phrases, pronouns and the small words around them, as trees."""

from __future__ import annotations

from micro.grammar.lexicon import Adjective, Noun, SmallWord
from micro.grammar.trees import Node

# form → (UPOS, relation, features); the number that a determiner asks for is in NUMBER.
_ARTICLES = {
    "the": ("DET", "det", "Definite=Def|PronType=Art"),
    "a": ("DET", "det", "Definite=Ind|PronType=Art"),
    "every": ("DET", "det", "Number=Sing|PronType=Tot"),
    "each": ("DET", "det", "Number=Sing|PronType=Tot"),
    "all": ("DET", "det", "PronType=Tot"),
    "some": ("DET", "det", "PronType=Ind"),
    "any": ("DET", "det", "PronType=Ind"),
    "no": ("DET", "det", "PronType=Neg"),
    "this": ("DET", "det", "Number=Sing|PronType=Dem"),
    "that": ("DET", "det", "Number=Sing|PronType=Dem"),
    "these": ("DET", "det", "Number=Plur|PronType=Dem"),
    "those": ("DET", "det", "Number=Plur|PronType=Dem"),
    "which": ("DET", "det", "PronType=Int"),
    "most": ("ADJ", "amod", "Degree=Sup"),
    "many": ("ADJ", "amod", "Degree=Pos"),
    "several": ("ADJ", "amod", "Degree=Pos"),
    "few": ("ADJ", "amod", "Degree=Pos"),
}
_LEMMAS = {"these": "this", "those": "that"}
_NUMERALS = ("two", "three", "four", "five", "six", "seven")
_POSSESSIVES = {
    "my": "Case=Gen|Number=Sing|Person=1|Poss=Yes|PronType=Prs",
    "our": "Case=Gen|Number=Plur|Person=1|Poss=Yes|PronType=Prs",
    "her": "Case=Gen|Gender=Fem|Number=Sing|Person=3|Poss=Yes|PronType=Prs",
    "his": "Case=Gen|Gender=Masc|Number=Sing|Person=3|Poss=Yes|PronType=Prs",
    "their": "Case=Gen|Number=Plur|Person=3|Poss=Yes|PronType=Prs",
    "its": "Case=Gen|Gender=Neut|Number=Sing|Person=3|Poss=Yes|PronType=Prs",
}
_POSSESSIVE_LEMMAS = {
    "my": "I",
    "our": "we",
    "her": "she",
    "his": "he",
    "their": "they",
    "its": "it",
}
# form → (lemma, person, plural, features)
_PRONOUNS = {
    "I": ("I", 1, False, "Case=Nom|Number=Sing|Person=1|PronType=Prs"),
    "me": ("I", 1, False, "Case=Acc|Number=Sing|Person=1|PronType=Prs"),
    "we": ("we", 1, True, "Case=Nom|Number=Plur|Person=1|PronType=Prs"),
    "us": ("we", 1, True, "Case=Acc|Number=Plur|Person=1|PronType=Prs"),
    "he": ("he", 3, False, "Case=Nom|Gender=Masc|Number=Sing|Person=3|PronType=Prs"),
    "him": ("he", 3, False, "Case=Acc|Gender=Masc|Number=Sing|Person=3|PronType=Prs"),
    "she": ("she", 3, False, "Case=Nom|Gender=Fem|Number=Sing|Person=3|PronType=Prs"),
    "her": ("she", 3, False, "Case=Acc|Gender=Fem|Number=Sing|Person=3|PronType=Prs"),
    "it": ("it", 3, False, "Gender=Neut|Number=Sing|Person=3|PronType=Prs"),
    "they": ("they", 3, True, "Case=Nom|Number=Plur|Person=3|PronType=Prs"),
    "them": ("they", 3, True, "Case=Acc|Number=Plur|Person=3|PronType=Prs"),
    "himself": ("himself", 3, False, "Gender=Masc|Number=Sing|Person=3|PronType=Prs|Reflex=Yes"),
    "herself": ("herself", 3, False, "Gender=Fem|Number=Sing|Person=3|PronType=Prs|Reflex=Yes"),
    "itself": ("itself", 3, False, "Gender=Neut|Number=Sing|Person=3|PronType=Prs|Reflex=Yes"),
    "themselves": ("themselves", 3, True, "Number=Plur|Person=3|PronType=Prs|Reflex=Yes"),
    "who": ("who", 3, False, "PronType=Rel"),
    "whom": ("who", 3, False, "Case=Acc|PronType=Int"),
    "that": ("that", 3, False, "PronType=Rel"),
    "what": ("what", 3, False, "PronType=Int"),
    "nobody": ("nobody", 3, False, "Number=Sing|PronType=Neg"),
    "nothing": ("nothing", 3, False, "Number=Sing|PronType=Neg"),
    "everyone": ("everyone", 3, False, "Number=Sing|PronType=Tot"),
    "someone": ("someone", 3, False, "Number=Sing|PronType=Ind"),
    "something": ("something", 3, False, "Number=Sing|PronType=Ind"),
}
_SUBJECTS = {"m": "he", "f": "she", None: "it"}
_OBJECTS = {"m": "him", "f": "her", None: "it"}


def nominal(
    noun: Noun,
    determiner: str | None = "the",
    *,
    plural: bool = False,
    adjectives: tuple[str | Adjective, ...] = (),
    entity: int | None = None,
) -> Node:
    """A noun phrase: the old dogs, three apples, my soup; without a determiner: apples, soup."""
    plural = plural and not noun.mass
    feats = "Number=Plur" if plural else "Number=Sing"
    form = noun.plural if plural else noun.lemma
    node = Node(form, noun.lemma, "NOUN", feats, plural=plural, entity=entity)
    if determiner is not None:
        _determine(node, determiner)
    for adjective in adjectives:
        word = adjective if isinstance(adjective, str) else adjective.lemma
        node.left("amod", adjectival(word))
    return node


def _determine(node: Node, word: str) -> None:
    if word in _NUMERALS:
        node.left("nummod", Node(word, word, "NUM", "NumForm=Word|NumType=Card"))
    elif word in _POSSESSIVES:
        lemma = _POSSESSIVE_LEMMAS[word]
        node.left("nmod:poss", Node(word, lemma, "PRON", _POSSESSIVES[word]))
    else:
        upos, relation, feats = _ARTICLES[word]
        node.left(relation, Node(word, _LEMMAS.get(word, word), upos, feats))


def possessed(noun: Noun, owner: Node, *, plural: bool = False) -> Node:
    """Anna's dog, the children's dogs."""
    node = nominal(noun, None, plural=plural)
    owner.right("case", Node("'" if owner.form.endswith("s") else "'s", "'s", "PART", joined=True))
    return node.left("nmod:poss", owner)


def proper(name: SmallWord | str, *, entity: int | None = None) -> Node:
    """A first name, a weekday, a month."""
    lemma = (name if isinstance(name, str) else name.lemma).capitalize()
    return Node(lemma, lemma, "PROPN", "Number=Sing", entity=entity)


def pronoun(form: str, *, entity: int | None = None, plural: bool | None = None) -> Node:
    """A pronoun by its form; a relative one takes the number of what it stands for."""
    lemma, person, is_plural, feats = _PRONOUNS[form]
    is_plural = is_plural if plural is None else plural
    return Node(form, lemma, "PRON", feats, plural=is_plural, person=person, entity=entity)


def subject_pronoun(gender: str | None, *, plural: bool = False) -> str:
    """he, she, it, they."""
    return "they" if plural else _SUBJECTS[gender]


def object_pronoun(gender: str | None, *, plural: bool = False) -> str:
    """him, her, it, them."""
    return "them" if plural else _OBJECTS[gender]


def adjectival(word: str, *, degree: str = "Pos") -> Node:
    """An adjective."""
    return Node(word, word, "ADJ", f"Degree={degree}")


def comparison(word: str, standard: Node) -> Node:
    """The comparative of a short adjective with its standard: taller than Tom."""
    node = Node(word + ("r" if word.endswith("e") else "er"), word, "ADJ", "Degree=Cmp")
    return node.right("obl", prepositional("than", standard))


def adverb(word: str) -> Node:
    """An adverb."""
    return Node(word, word, "ADV")


def intensified(word: str, intensifier: str | None) -> Node:
    """An adjective, with an intensifier if there is one: very good, a bit slow."""
    node = adjectival(word)
    if intensifier == "a bit":
        bit = Node("bit", "bit", "NOUN", "Number=Sing")
        node.left("obl:unmarked", bit.left("det", Node("a", "a", "DET", _ARTICLES["a"][2])))
    elif intensifier:
        node.left("advmod", adverb(intensifier))
    return node


def prepositional(preposition: str, phrase: Node) -> Node:
    """A phrase like "in the garden": the noun is the head, as in UD."""
    phrase.before.insert(0, Node(preposition, preposition, "ADP", relation="case"))
    return phrase


def joined(first: Node, second: Node, conjunction: str = "and") -> Node:
    """Two phrases joined by a conjunction; two nouns make a plural."""
    second.before.insert(0, Node(conjunction, conjunction, "CCONJ", relation="cc"))
    first.right("conj", second)
    first.plural = first.plural or conjunction == "and"
    return first
