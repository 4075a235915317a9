"""Ask [CLS], too: for some tokens of its row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from microtome.training.mlm.rows import Array, Batch, Tokens


def ask_first(
    batch: Batch,
    rows: Array,
    *,
    n: int,
    weights: Array,
    tokens: Tokens,
    random: np.random.Generator,
) -> Batch:
    """Ask [CLS] too: for `n` tokens of its row, drawn by `weights` (one per token id).

    Masked tokens alone never ask it for anything, and a classifier that reads it finds nothing.
    """
    scores = random.random(rows.shape) ** (1 / weights[rows])
    scores[(rows == tokens.cls) | (rows == tokens.sep)] = -1.0
    drawn = np.argpartition(-scores, n, axis=1)[:, :n]
    labels = np.take_along_axis(rows, drawn, axis=1)
    return replace(
        batch,
        positions=np.concatenate([np.zeros_like(drawn), batch.positions], axis=1),
        labels=np.concatenate([labels, batch.labels], axis=1),
    )


def rarity(by_frequency: Array) -> Array:
    """The square root of each token's rank by frequency: words that say more come first."""
    ranks = np.empty(len(by_frequency))
    ranks[by_frequency] = np.arange(1, len(by_frequency) + 1)
    return np.sqrt(ranks)
