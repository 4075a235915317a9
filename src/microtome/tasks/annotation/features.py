"""Features of words as expressions over their annotation: ``upos=NOUN|PROPN & deprel=obj``.

    expression = test { "&" test }
    test       = field ("=" | "!=") value { "|" value }
    field      = upos | xpos | deprel | lemma | form

A value may hold ``*``: ``deprel=nsubj*`` is nsubj and all of its subtypes. Lemmas and forms are
compared in lower case. The features of Kovaleva et al., written out for Universal Dependencies,
are in FEATURES.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from microtome.errors import RequestError
from microtome.tasks.annotation.treebanks import Word

CLS, SEP, PUNCTUATION = "[CLS]", "[SEP]", "punctuation"
NEGATIONS = "not|n't|no|never|none|nobody|nothing|nowhere|neither|nor|cannot"

_FIELDS: Mapping[str, Callable[[Word], str]] = {
    "upos": lambda word: word.upos,
    "xpos": lambda word: word.xpos,
    "deprel": lambda word: word.relation,
    "lemma": lambda word: word.lemma.lower(),
    "form": lambda word: word.form.lower(),
}


@dataclass(frozen=True)
class Condition:
    """One field, and the values that pass; ``negated``: those that don't."""

    field: str
    values: tuple[str, ...]
    negated: bool = False

    def passes(self, word: Word) -> bool:
        """Whether the word's field has one of the values."""
        content = _FIELDS[self.field](word)
        return any(fnmatchcase(content, value) for value in self.values) != self.negated


@dataclass(frozen=True)
class Feature:
    """A name, and the tests that a word with the feature passes, all of them."""

    name: str
    tests: tuple[Condition, ...]

    def holds(self, word: Word) -> bool:
        """Whether the word has the feature."""
        return all(test.passes(word) for test in self.tests)


def parse_feature(text: str) -> Feature:
    """A feature from ``name=EXPRESSION``."""
    name, equals, expression = text.partition("=")
    if not equals or not name.strip() or not expression.strip():
        raise RequestError(
            f"expected a feature as name=EXPRESSION, got {text!r}",
            "e.g. adjectives=upos=ADJ, or agents=upos=NOUN|PROPN & deprel=nsubj",
        )
    name = name.strip()
    if name in (CLS, SEP, *(feature.name for feature in FEATURES)):
        raise RequestError(f"there already is a feature called {name!r}", "choose another name")
    return Feature(name, tuple(_test(part, text) for part in expression.split("&")))


def _test(part: str, whole: str) -> Condition:
    negated = "!=" in part
    field, equals, values = part.partition("!=" if negated else "=")
    field = field.strip()
    if not equals or field not in _FIELDS:
        raise RequestError(
            f"expected FIELD=VALUE|VALUE in feature {whole!r}, got {part.strip()!r}",
            f"fields are {', '.join(_FIELDS)}; several tests are joined by &",
        )
    listed = tuple(value.strip() for value in values.split("|"))
    if not all(listed):
        raise RequestError(f"feature {whole!r} has an empty value in {part.strip()!r}")
    lowered = field in ("lemma", "form")
    return Condition(field, tuple(v.lower() if lowered else v for v in listed), negated)


def _written(name: str, expression: str) -> Feature:
    return Feature(name, tuple(_test(part, name) for part in expression.split("&")))


# spaCy's English models of 2019 tagged auxiliaries as verbs and proper nouns apart; both are taken
# in here, because the paper speaks of verbs and nouns.
FEATURES: tuple[Feature, ...] = (
    _written("nouns", "upos=NOUN|PROPN"),
    _written("verbs", "upos=VERB|AUX"),
    _written("pronouns", "upos=PRON"),
    _written("subjects", "deprel=nsubj|nsubj:*"),
    _written("objects", "deprel=obj"),
    _written("negations", f"lemma={NEGATIONS}"),
)
MARKS = _written(PUNCTUATION, "upos=PUNCT")


def parse_features(texts: Sequence[str]) -> tuple[Feature, ...]:
    """Several features; names must differ."""
    features = tuple(parse_feature(text) for text in texts)
    names = [feature.name for feature in features]
    if len(set(names)) < len(names):
        raise RequestError(f"expected features with different names, got {', '.join(names)}")
    return features
