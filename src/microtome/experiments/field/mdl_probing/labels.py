"""The labels that are described: one column of classes per text or word, or several of 0 and 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microtome.experiments.field.mdl_probing.plan import CONTROL, REAL, n_classes_of
from microtome.experiments.field.mdl_probing.random_labels import random_labels, types_of
from microtome.tasks import Dataset, TaggedTexts
from microtome.tasks.encoding.tagged import UNSEEN

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Labels:
    """Of n texts, or n words; k is 1, or how many labels may apply to a text."""

    targets: Mapping[str, Indices]  # real and control, (n, k)
    n_classes: int
    row_of: Indices  # (n,), ascending
    clusters: Indices  # (n,), of what isn't independent: words of a sentence, texts of a cluster

    @classmethod
    def of(cls, rows: Dataset, encoded: object, *, seed: int) -> Labels:
        """Those of some rows; words that the tokenizer drops have no state and are left out."""
        row_of, real, types = np.arange(len(rows)), rows.targets, types_of(rows)
        if rows.tags is not None:
            assert isinstance(encoded, TaggedTexts)
            seen = encoded.word_tokens != UNSEEN
            row_of = np.repeat(row_of, np.diff(rows.tags.offsets))[seen]
            real, types = rows.tags.values[seen], types[seen]
        real = real.astype(np.int64).reshape(len(real), -1)
        sets, set_of = np.unique(real, axis=0, return_inverse=True)  # several labels stay together
        control = sets[random_labels(types, set_of.reshape(-1), seed=seed)]
        clusters = row_of if rows.clusters is None else rows.clusters[row_of]
        return cls({REAL: real, CONTROL: control}, n_classes_of(rows), row_of, clusters)
