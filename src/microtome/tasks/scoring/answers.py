"""SQuAD's measure of an answer: equal, or sharing words, after the official normalisation."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class AnswerScore(NamedTuple):
    """How right one answer is, 0 to 1."""

    exact_match: float
    f1: float


def normalise(text: str) -> str:
    """Lower case, without ASCII punctuation and English articles, single spaces."""
    text = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def score_answer(predicted: str, accepted: Sequence[str]) -> AnswerScore:
    """The best score over the accepted answers.

    Where none is accepted (or only articles are), ``""`` is right.
    """
    references = [answer for answer in accepted if normalise(answer)] or [""]
    return AnswerScore(
        exact_match=max(_exact(predicted, answer) for answer in references),
        f1=max(_f1(predicted, answer) for answer in references),
    )


def _exact(predicted: str, accepted: str) -> float:
    return float(normalise(predicted) == normalise(accepted))


def _f1(predicted: str, accepted: str) -> float:
    said, right = normalise(predicted).split(), normalise(accepted).split()
    if not said or not right:
        return float(said == right)
    n_shared = (Counter(said) & Counter(right)).total()
    # 2PR/(P + R) with P = shared/said, R = shared/right.
    return 2 * n_shared / (len(said) + len(right))
