"""Description length: how many bits the labels cost whoever has the states of all rows.

The online code of Voita & Titov (2020): labels are sent block by block, each at the prices of a
probe that was trained on the blocks before it. No probe scores a label that it has seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from microtome.training.probe.fitting import logistic
from microtome.training.probe.states import FloatArray

TIMESTEPS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.25, 12.5, 25.0, 50.0, 100.0)
"""Percent of the rows that are sent when each block is, as in the paper."""

FREQUENCIES_ALONE = math.inf
"""The penalty that leaves the probe its biases: the frequencies of the labels sent before."""

PENALTIES = (FREQUENCIES_ALONE, 1000.0, 100.0, 10.0, 1.0)
"""½·penalty·‖W‖² next to the summed loss; 1 is what frozen-probing takes, scikit-learn's C = 1."""

Bits = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Blocks:
    """The order in which labels are sent, and how many are when each block ends."""

    order: Indices  # (n,)
    ends: tuple[int, ...]  # ascending, the last is n

    @classmethod
    def of(cls, row_of: Indices, n_classes: int, *, seed: int) -> Blocks:
        """Blocks of whole rows in random order; ``row_of`` is the row of each label, ascending.

        Every label may occur in the first block: it has ``n_classes`` labels at least.
        """
        sizes = np.bincount(row_of)
        rows = np.random.default_rng(seed).permutation(len(sizes))
        rank = np.empty(len(sizes), dtype=np.int64)
        rank[rows] = np.arange(len(sizes))
        n_sent = np.cumsum(sizes[rows])  # labels, after each row
        n_rows = {math.ceil(share * len(sizes) / 100) for share in TIMESTEPS}
        ends = {int(n_sent[n - 1]) for n in n_rows}
        first = int(n_sent[min(int(np.searchsorted(n_sent, n_classes)), len(sizes) - 1)])
        return cls(
            np.argsort(rank[row_of], kind="stable"),
            (first, *sorted(end for end in ends if end > first)),
        )


def online_code(
    scaled: FloatArray,
    targets: Indices,
    n_classes: int,
    blocks: Blocks,
    *,
    penalties: Sequence[float] = PENALTIES,
) -> Bits:
    """The bits of every label (n,), given one state per label: standardised features (n, D).

    The first block costs log2 of ``n_classes`` per label. Of several ``penalties`` a block takes
    the one that would have sent the block before it in the fewest bits, the second block the
    first; whoever receives the labels can choose alike.

    Example::

        blocks = Blocks.of(np.arange(len(targets)), 2, seed=0)
        online_code(standardized(states)[0], targets, 2, blocks).sum()
    """
    states, labels = scaled[blocks.order], targets[blocks.order]
    bits = np.full(len(labels), math.log2(n_classes))
    chosen = penalties[0]
    for start, stop in pairwise(blocks.ends):
        # Nothing is chosen by the last block, which is half of the work.
        tried = (chosen,) if stop == len(labels) else penalties
        prices = {
            penalty: _prices(states[:stop], labels[:stop], n_classes, start, penalty)
            for penalty in tried
        }
        bits[start:stop] = prices[chosen]
        chosen = min(prices, key=lambda penalty: float(prices[penalty].sum()))
    return _as_given(bits, blocks)


def frequency_code(targets: Indices, n_classes: int, blocks: Blocks) -> Bits:
    """The bits of every label (n,) without states: by the frequencies before its block."""
    nothing = np.empty((len(targets), 0), dtype=np.float32)
    return online_code(nothing, targets, n_classes, blocks, penalties=(FREQUENCIES_ALONE,))


def _prices(
    states: FloatArray, labels: Indices, n_classes: int, n_before: int, penalty: float
) -> Bits:
    """The bits of the labels from ``n_before`` on, by a probe that was trained on those before.

    One more label that is spread evenly over all classes counts as seen: a label that is new, or
    that the probe has ruled out, costs log2(n_classes · (n_before + 1)) bits, and not infinity.
    """
    seen, codes = np.unique(labels[:n_before], return_inverse=True)
    if penalty == FREQUENCIES_ALONE or len(seen) == 1:
        shares = np.bincount(codes) / n_before
        likely = np.broadcast_to(shares, (len(labels) - n_before, len(seen)))
    else:
        weight, bias = logistic(states[:n_before], codes, len(seen), penalty)
        likely = softmax(states[n_before:] @ weight.astype(np.float32) + bias, axis=1)
    column = np.full(n_classes, -1)
    column[seen] = np.arange(len(seen))
    wanted = column[labels[n_before:]]
    given = np.where(wanted < 0, 0.0, likely[np.arange(len(wanted)), wanted])
    return -np.log2((n_before * given + 1 / n_classes) / (n_before + 1))


def _as_given(bits: Bits, blocks: Blocks) -> Bits:
    """From the order of sending to the order of the rows."""
    placed = np.empty_like(bits)
    placed[blocks.order] = bits
    return placed
