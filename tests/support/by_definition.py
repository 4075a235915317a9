"""What the docs define, written out once more for tests: features in Universal Dependencies, the
largest of k drawn values, and the online code of labels.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from math import comb

import numpy as np
from sklearn.linear_model import LogisticRegression

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


def sent_by_scikit_learn(scaled, targets, n_classes, blocks, penalties):
    """The bits of every label; of several penalties each block has the last block's best."""
    bits = np.full(len(targets), np.log2(n_classes))
    chosen = penalties[0]
    for start, stop in pairwise(blocks.ends):
        known, sent = blocks.order[:start], blocks.order[start:stop]
        costs = {}
        for penalty in penalties:
            likely = _likely(scaled[known], targets[known], scaled[sent], n_classes, penalty)
            shares = likely[np.arange(len(sent)), targets[sent]]
            costs[penalty] = -np.log2((start * shares + 1 / n_classes) / (start + 1))
        bits[sent] = costs[chosen]
        chosen = min(costs, key=lambda penalty: costs[penalty].sum())
    return bits


def _likely(known, labels, sent, n_classes, penalty):
    found = np.zeros((len(sent), n_classes))
    if np.isinf(penalty) or len({*labels}) == 1:
        found[:] = np.bincount(labels, minlength=n_classes) / len(labels)
        return found
    fitted = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000).fit(known, labels)
    found[:, fitted.classes_] = fitted.predict_proba(sent)
    return found
