"""Control tasks (Hewitt & Liang 2019): random labels, known by learning types by heart alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microtome.tasks import Dataset

Indices = NDArray[np.int64]
CONTROL_STREAM = 1  # the draws are others than those of the order of the rows


def types_of(rows: Dataset) -> Indices:
    """The type of what each label is of, in order: equal words, or equal texts, are one type."""
    if rows.tags is None:
        return np.unique(rows.digests, axis=0, return_inverse=True)[1].reshape(-1)
    numbers: dict[str, int] = {}
    words = (word for row in rows.rows() for word in row.words or ())
    return np.array([numbers.setdefault(word, len(numbers)) for word in words], dtype=np.int64)


def random_labels(types: Indices, labels: Indices, *, seed: int) -> Indices:
    """A random label for every type, as often as in ``labels``, so far as whole types allow.

    Both are (n,). Types are dealt the labels that are left, the commonest types first.

    Example: ``random_labels([0, 1, 0, 2], [7, 7, 7, 9], seed=0)``: the first and third are equal
    """
    rng = np.random.default_rng([seed, CONTROL_STREAM])
    _, type_of, sizes = np.unique(types, return_inverse=True, return_counts=True)
    classes, left = np.unique(labels, return_counts=True)
    shuffled = rng.permutation(len(sizes))
    order = shuffled[np.argsort(-sizes[shuffled], kind="stable")]
    dealt = np.empty(len(sizes), dtype=np.int64)
    for kind, draw in zip(order, rng.random(len(sizes)), strict=True):
        ends = np.maximum(left, 0).cumsum()
        dealt[kind] = np.searchsorted(ends, draw * ends[-1], side="right")
        left[dealt[kind]] -= sizes[kind]
    return classes[dealt][type_of]
