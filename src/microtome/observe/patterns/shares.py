"""Shares of patterns with intervals, corrected for the classifier's known mistakes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microtome.observe.patterns.network import BLOCK

Floats = NDArray[np.float64]
N_REPEATS = 1000
N_STEPS = 300  # of EM; shares move by less than 1e-4 from there on


def mistakes(confusion: NDArray[np.int64], *, pairs: bool) -> Floats:
    """P(given | true) from counts (…, true, given); half a map is added to each cell.

    Without pairs nothing is ``block``: its row and column are left out (zero).
    """
    counts = confusion.astype(np.float64) + 0.5
    if not pairs:
        counts[..., BLOCK, :] = counts[..., :, BLOCK] = 0
    total = counts.sum(axis=-1, keepdims=True)
    rates: Floats = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
    return rates


def corrected(shares: Floats, rates: Floats) -> Floats:
    """The true shares (…, 5) that, with these mistakes (…, 5, 5), most likely give the observed.

    Maximum likelihood by EM: shares stay between 0 and 1, as inverting the matrix wouldn't.
    """
    possible = (rates.sum(axis=-1) > 0).astype(np.float64)
    found: Floats = possible / possible.sum(axis=-1, keepdims=True) * np.ones_like(shares)
    for _ in range(N_STEPS):
        expected = (found[..., None, :] @ rates)[..., 0, :]
        ratio = np.divide(shares, expected, out=np.zeros_like(shares), where=expected > 0)
        found = found * (rates @ ratio[..., :, None])[..., 0]
        found /= np.maximum(found.sum(axis=-1, keepdims=True), 1e-12)
    return found


def drawn_shares(by_text: Floats, seed: int, clusters: NDArray[np.int64] | None = None) -> Floats:
    """Shares (repeats, 5) over texts drawn again; ``by_text`` (n, 5) are each text's own.

    Texts of one cluster are drawn together.
    """
    names, of_text = np.unique(
        np.arange(len(by_text)) if clusters is None else clusters, return_inverse=True
    )
    sums = np.zeros((len(names), by_text.shape[1]))
    np.add.at(sums, of_text, by_text)
    sizes = np.bincount(of_text).astype(np.float64)
    rng = np.random.default_rng(seed)
    times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=N_REPEATS)
    drawn: Floats = (times @ sums) / (times @ sizes)[:, None]
    return drawn


def drawn_mistakes(confusion: NDArray[np.int64], seed: int, *, pairs: bool) -> Floats:
    """Matrices of mistakes (repeats, 5, 5) from confusion counts drawn again, row by row."""
    rng = np.random.default_rng(seed)
    totals = confusion.sum(axis=1)
    rows = [
        rng.multinomial(n, row / n if n else np.full(len(row), 1 / len(row)), size=N_REPEATS)
        for n, row in zip(totals, confusion, strict=True)
    ]
    return mistakes(np.stack(rows, axis=1), pairs=pairs)
