"""Feature expressions: what they mean, and which are refused."""

from __future__ import annotations

import pytest

from microtome.errors import RequestError
from microtome.tasks.annotation.features import FEATURES, parse_feature
from microtome.tasks.annotation.treebanks import Word


def test_expressions_say_what_they_mean():
    def word(**fields):
        return Word("Dogs", **fields)

    agents = parse_feature("agents=upos=NOUN|PROPN & deprel=nsubj*")
    assert agents.holds(word(upos="PROPN", relation="nsubj:pass"))
    assert not agents.holds(word(upos="NOUN", relation="obj"))
    assert not agents.holds(word(upos="VERB", relation="nsubj"))
    assert parse_feature("x=form=DOGS").holds(word())
    assert not parse_feature("x=upos!=NOUN|VERB").holds(word(upos="VERB"))
    assert parse_feature("x=upos!=NOUN|VERB").holds(word(upos="ADJ"))
    subjects = next(feature for feature in FEATURES if feature.name == "subjects")
    assert subjects.holds(word(relation="nsubj:pass"))
    assert not subjects.holds(word(relation="csubj"))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("upos", "name=EXPRESSION"), ("x=pos=NOUN", "FIELD=VALUE"), ("x=upos=", "empty value"),
        ("nouns=upos=NOUN", "there already"), ("x=upos=A & ", "FIELD=VALUE"), ("=upos=A", "name="),
    ],
)  # fmt: skip
def test_wrong_expressions_are_refused(text, word):
    with pytest.raises(RequestError, match=word):
        parse_feature(text)
