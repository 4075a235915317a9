"""Entities as strict IOB2 has them: a B, and the I of the same type that follow it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microtome.errors import RequestError
from microtome.statistics import SumMetric, pooled_f1
from microtome.tasks.reading.scanning import Tags
from microtome.tasks.tags import OUTSIDE

Indices = NDArray[np.int64]


class Entities(NamedTuple):
    """The entities of many sentences: first word, word after the last, type; by first word."""

    starts: Indices
    ends: Indices
    types: Indices
    n_stray: int  # runs of I that no B begins: in strict IOB2 they are nothing


def entities(names: Sequence[str], tags: Indices, offsets: Indices) -> Entities:
    """The entities that flat ``tags``, indices into ``names``, mark; none crosses a sentence."""
    types = sorted({name[2:] for name in names if name != OUTSIDE})
    type_of = np.array([-1 if n == OUTSIDE else types.index(n[2:]) for n in names])[tags]
    begins = np.array([name.startswith("B-") for name in names])[tags]
    first_words = np.zeros(len(tags), dtype=bool)
    first_words[offsets[:-1][np.diff(offsets) > 0]] = True
    same = np.r_[False, type_of[1:] == type_of[:-1]]
    # A run is what belongs together: an entity, a stretch of stray I, or of words outside.
    starts = np.flatnonzero(begins | first_words | ~same)
    ends = np.r_[starts[1:], len(tags)][: len(starts)]
    is_entity = begins[starts]
    n_stray = int((~is_entity & (type_of[starts] >= 0)).sum())
    return Entities(starts[is_entity], ends[is_entity], type_of[starts[is_entity]], n_stray)


def entity_f1(names: Sequence[str], predicted: Indices, gold: Tags) -> SumMetric:
    """F1 of exact entities, place and type, as a function of the sentences' weights.

    Both sides are indices into ``names``, one for each word.
    """
    if predicted.shape != gold.values.shape:
        raise RequestError(
            f"expected a tag for each of {len(gold.values)} words, got shape {predicted.shape}"
        )
    called = entities(names, predicted, gold.offsets)
    real = entities(names, gold.values, gold.offsets)
    _, ours, theirs = np.intersect1d(called.starts, real.starts, return_indices=True)
    right = (called.ends[ours] == real.ends[theirs]) & (called.types[ours] == real.types[theirs])
    n_rows = len(gold.offsets) - 1

    def by_sentence(starts: Indices) -> Indices:
        rows = np.searchsorted(gold.offsets, starts, side="right") - 1
        return np.bincount(rows, minlength=n_rows)

    starts = (called.starts[ours[right]], called.starts, real.starts)
    return pooled_f1(*map(by_sentence, starts))
