"""What the docs define, written out once more for tests: features in Universal Dependencies, and
the largest of k drawn values.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

NEGATIONS = (
    "not", "n't", "no", "never", "none", "nobody", "nothing", "nowhere", "neither", "nor", "cannot",
)  # fmt: skip
FEATURES_IN_UD = {
    "nouns": lambda word: word.upos in ("NOUN", "PROPN"),
    "verbs": lambda word: word.upos in ("VERB", "AUX"),
    "pronouns": lambda word: word.upos == "PRON",
    "subjects": lambda word: word.relation.split(":")[0] == "nsubj",
    "objects": lambda word: word.relation == "obj",
    "negations": lambda word: word.lemma.lower() in NEGATIONS,
}


def expected_most(values, k):
    """The mean of the largest of k: the i-th of m is it in C(m−i−1, k−1) of C(m, k) draws."""
    m, falling = len(values), -np.sort(-values, axis=0)
    return sum(comb(m - i - 1, k - 1) / comb(m, k) * falling[i] for i in range(m))


def drawn_most(values, k):
    """The mean over all ways to draw k of the values of the largest drawn."""
    return np.mean([np.max(some, axis=0) for some in combinations(values, k)], axis=0)
