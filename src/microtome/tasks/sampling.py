"""Which rows: a seeded cap, nested fractions, and the 80/20 split of own data.

Orders come from a hash of (seed, row) rather than a library's random stream, so that the same
request picks the same rows with every version of every library.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from microtome.errors import RequestError

Indices: TypeAlias = NDArray[np.int64]
Keys: TypeAlias = NDArray[np.uint64]

HELD_OUT = 0.2
"""The dev share of own data."""

N_QUANTILES = 10
"""Strata of a regression label."""


def order_keys(n_rows: int, seed: int) -> Keys:
    """One pseudo-random number per row (SplitMix64 of seed and place)."""
    start = _mix(np.array([seed & (2**64 - 1)], dtype=np.uint64))
    return _mix(np.arange(n_rows, dtype=np.uint64) ^ start)


def _mix(values: Keys) -> Keys:
    # SplitMix64; unsigned arrays wrap around silently, which is what it needs.
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def limited(n_rows: int, limit: int, seed: int) -> Indices:
    """``limit`` of ``n_rows`` rows in file order; a smaller limit gives a part of a larger one."""
    if limit < 1:
        raise RequestError(f"expected a limit of at least 1 row, got {limit}")
    return np.sort(np.argsort(order_keys(n_rows, seed), kind="stable")[:limit])


def whole_clusters(clusters: Indices, limit: int, seed: int) -> Indices:
    """The rows of random clusters, in file order: as many as fit into ``limit``, at least one."""
    _, of_row, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    order = np.argsort(order_keys(len(sizes), seed), kind="stable")
    n_fitting = max(1, int(np.searchsorted(np.cumsum(sizes[order]), limit, side="right")))
    return np.flatnonzero(np.isin(of_row, order[:n_fitting]))


def n_of_fraction(fraction: float, n_rows: int) -> int:
    """How many rows a fraction asks for: 1 = all, below 1 a share, 2 and more = rows."""
    if fraction == 1:
        return n_rows
    if 0 < fraction < 1:
        return max(1, round(fraction * n_rows))
    if fraction < 2 or fraction != int(fraction):
        raise RequestError(
            f"expected a share or a number of rows, got fraction {fraction:g}",
            "1 is all rows, below 1 a share, a whole number from 2 on counts rows",
        )
    if fraction > n_rows:
        raise RequestError(f"expected at most {n_rows:,} training rows, got {int(fraction):,}")
    return int(fraction)


def fraction_of(strata: Indices, fraction: float, seed: int) -> Indices:
    """Rows of a training fraction in file order: stratified, and nested for one seed.

    Within a stratum of m rows the r-th in random order has rank (r + ½)/m; all rows are
    taken by that rank, so that every prefix has about each stratum's share.
    """
    n_rows = len(strata)
    n_taken = n_of_fraction(fraction, n_rows)
    keys = order_keys(n_rows, seed)
    order = np.lexsort((keys, strata))  # by stratum, then at random
    first = np.r_[0, np.flatnonzero(np.diff(strata[order])) + 1]
    sizes = np.diff(np.r_[first, n_rows])
    rank = np.arange(n_rows) - np.repeat(first, sizes)
    rank_share = np.empty(n_rows)
    rank_share[order] = (rank + 0.5) / np.repeat(sizes, sizes)
    return np.sort(np.lexsort((keys, rank_share))[:n_taken])


def quantile_strata(values: NDArray[np.float64]) -> Indices:
    """Equal-sized strata of a number; equal values share one."""
    _, level, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - counts / 2
    stratum = np.minimum((middle * N_QUANTILES / len(values)).astype(np.int64), N_QUANTILES - 1)
    return np.asarray(stratum[level], dtype=np.int64)


def held_out(digests: Keys, strata: Indices) -> tuple[Indices, Indices]:
    """Rows for training and for dev, by content: ``digests`` (n, k) are hashes of the texts.

    Rows with equal texts stay together. Within a stratum the texts with the lowest hashes, up to a
    fifth of its rows, are dev: the order of the file doesn't matter.
    """
    _, first, group = np.unique(digests, axis=0, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    n_groups = len(first)
    # The smallest stratum of equal texts with different labels, whatever their order.
    stratum = np.full(n_groups, np.iinfo(np.int64).max)
    np.minimum.at(stratum, group, strata)
    size = np.bincount(group, minlength=n_groups)
    is_dev = np.zeros(n_groups, dtype=bool)
    for value in np.unique(stratum):
        members = np.flatnonzero(stratum == value)  # by hash: np.unique has sorted them
        is_dev[members[: _n_dev(size[members])]] = True
    dev = is_dev[group]
    return np.flatnonzero(~dev), np.flatnonzero(dev)


def _n_dev(sizes: Indices) -> int:
    """How many texts of a stratum make a fifth of its rows; both sides get one where two exist."""
    if len(sizes) < 2:
        return 0
    share = HELD_OUT * sizes.sum()
    middle = np.cumsum(sizes) - sizes / 2
    return int(np.clip(np.count_nonzero(middle < share), 1, len(sizes) - 1))
