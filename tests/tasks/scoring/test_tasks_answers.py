"""SQuAD's answer scores against arithmetic on the page."""

from __future__ import annotations

import pytest

from microtome.tasks import normalise, score_answer

# predicted, accepted answers, exact match, F1; F1 = 2 × shared words / (words + words).
CASES = [
    # equal, and equal after normalisation
    ("Paris", ["Paris"], 1, 1),
    ("paris", ["PARIS"], 1, 1),
    ("The Paris", ["Paris"], 1, 1),
    ("a cat", ["cat"], 1, 1),
    ("an apple", ["the apple"], 1, 1),
    ("Paris.", ["Paris"], 1, 1),
    ('"Paris"', ["Paris"], 1, 1),
    ("  Paris \t\n", ["Paris"], 1, 1),
    ("New   York", ["New York"], 1, 1),
    ("U.S.", ["US"], 1, 1),
    ("$12", ["12"], 1, 1),
    ("it's", ["its"], 1, 1),
    # punctuation is taken out, not replaced by a space
    ("well-known", ["well known"], 0, 0),
    ("1,000", ["1000"], 1, 1),
    # articles are whole words; "theatre" keeps its "the"
    ("theatre", ["atre"], 0, 0),
    ("plan a", ["plan"], 1, 1),
    # a hyphen goes first, so "a-cat" is the word "acat"
    ("a-cat", ["cat"], 0, 0),
    # unicode: only ASCII punctuation goes, lower case covers all letters
    ("École", ["école"], 1, 1),
    ("Straße", ["strasse"], 0, 0),
    ("«Paris»", ["Paris"], 0, 0),
    ("1990–1995", ["19901995"], 0, 0),
    ("1990-1995", ["19901995"], 1, 1),
    ("New\u00a0York", ["New York"], 1, 1),
    ("東京", ["東京"], 1, 1),
    # shared words
    ("New York", ["New York City"], 0, 2 * 2 / (2 + 3)),
    ("New York City", ["York"], 0, 2 * 1 / (3 + 1)),
    ("the New York", ["a York"], 0, 2 * 1 / (2 + 1)),
    ("big big dog", ["big dog"], 0, 2 * 2 / (3 + 2)),
    ("big dog", ["big big dog dog"], 0, 2 * 2 / (2 + 4)),
    ("dog big", ["big dog"], 0, 1),
    ("London", ["Paris"], 0, 0),
    # several accepted answers: the best, for each metric by itself
    ("Paris", ["London", "Paris"], 1, 1),
    ("New York", ["New York City", "York"], 0, 0.8),
    ("old Paris", ["Paris", "Paris France", "old London"], 0, 2 * 1 / (2 + 1)),
    # no answer
    ("", [], 1, 1),
    ("Paris", [], 0, 0),
    ("", ["Paris"], 0, 0),
    # what normalises to nothing is no answer
    ("the", [], 1, 1),
    ("...", [], 1, 1),
    ("", ["the"], 1, 1),
    ("Paris", ["the", "Paris"], 1, 1),
    ("", ["a", "Paris"], 0, 0),
]


@pytest.mark.parametrize(("predicted", "accepted", "exact", "f1"), CASES)
def test_an_answer_scores_what_the_page_says(predicted, accepted, exact, f1):
    found = score_answer(predicted, accepted)
    assert found.exact_match == exact
    assert found.f1 == pytest.approx(f1, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("The quick, brown fox!", "quick brown fox"),
        ("A an the", ""),
        ("Another theme", "another theme"),
        ("_a_", ""),
        ("a\u2028b", "b"),
    ],
)
def test_normalisation(text, wanted):
    assert normalise(text) == wanted


def test_there_are_at_least_thirty_cases():
    assert len(CASES) >= 30
