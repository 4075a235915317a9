"""Regular English inflection; the tables list what is irregular."""

from __future__ import annotations

_SIBILANTS = ("s", "x", "z", "ch", "sh")
_VOWELS = "aeiou"


def plural(noun: str) -> str:
    """Plurals: dog → dogs, box → boxes, lady → ladies."""
    return _with_s(noun)


def third_person(verb: str) -> str:
    """Third person: walk → walks, carry → carries, go → goes."""
    return verb + "es" if verb.endswith("o") else _with_s(verb)


def past(verb: str) -> str:
    """Past tense: walk → walked, bake → baked, carry → carried."""
    if verb.endswith("e"):
        return verb + "d"
    if _consonant_y(verb):
        return verb[:-1] + "ied"
    return verb + "ed"


def present_participle(verb: str) -> str:
    """The -ing form: walk → walking, bake → baking, see → seeing, lie → lying."""
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")):
        return verb[:-1] + "ing"
    return verb + "ing"


def article(next_word: str) -> str:
    """The indefinite article before a word: a dog, an apple, a uniform, an hour."""
    word = next_word.lower()
    if word.startswith(("uni", "use", "eu", "one")) and not word.startswith("unin"):
        return "a" if not word.startswith(("unim", "unun")) else "an"
    if word.startswith(("hour", "honest")):
        return "an"
    return "an" if word[0] in _VOWELS else "a"


def _with_s(word: str) -> str:
    if word.endswith(_SIBILANTS):
        return word + "es"
    if _consonant_y(word):
        return word[:-1] + "ies"
    return word + "s"


def _consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in _VOWELS
