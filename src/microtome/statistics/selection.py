"""What is the best of many worth? The best is picked on some rows and scored on others.

The best of 144 heads on the rows it was picked on looks good by luck alone. Here the rows (or
their clusters) are halved at random many times; the best is picked on one half and gets a 97.5 %
paired interval on the other; the medians of the ends are reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microtome.errors import RequestError
from microtome.statistics.intervals import FloatArray, IntArray, Interval
from microtome.statistics.resampling import Units
from microtome.statistics.sweeps import (
    Baseline,
    Sweep,
    Variants,
    bootstrap_difference,
    differences_of,
    sweep_of,
)

V = TypeVar("V", bound=Hashable)

HALF_LEVEL = 0.975


@dataclass(frozen=True)
class HonestGain(Generic[V]):
    """The gain to believe: mean value and median ends over halves; what was picked how often."""

    gain: Interval
    n_splits: int
    picks: tuple[tuple[V, float], ...]  # variant, share of the halves; most frequent first


@dataclass(frozen=True)
class PickedGain:
    """The gain of one variant, and where it was picked and scored."""

    variant: int
    gain: Interval
    how: str


def halves(
    n_rows: int, *, clusters: ArrayLike | None = None, n_splits: int = 100, seed: int = 0
) -> NDArray[np.bool_]:
    """Random halves of the rows (n_splits, n_rows): True = pick here. Clusters stay together."""
    units = Units.of(clusters, n_rows)
    if units.n < 2:
        raise RequestError(f"{units.n} row or cluster given, at least 2 wanted to halve them")
    if n_splits < 1:
        raise RequestError(f"{n_splits} splits given, at least 1 wanted")
    rng = np.random.default_rng(seed)
    half = np.arange(units.n) < units.n // 2
    drawn = rng.permuted(np.tile(half, (n_splits, 1)), axis=1)
    return drawn if units.of_row is None else drawn[:, units.of_row]


def honest_choice(
    choose: Callable[[IntArray], V],
    compare: Callable[[V, IntArray], Interval],
    n_rows: int,
    *,
    clusters: ArrayLike | None = None,
    n_splits: int = 100,
    seed: int = 0,
) -> HonestGain[V]:
    """The honest gain of any way to choose: a greedy set of heads, a depth, an ensemble.

    ``choose(rows)`` may look at these rows only; ``compare(chosen, rows)`` gives the 97.5 % paired
    interval of its gain on the others.
    """
    picks, gains = [], []
    for half in halves(n_rows, clusters=clusters, n_splits=n_splits, seed=seed):
        picks.append(choose(np.flatnonzero(half)))
        gains.append(compare(picks[-1], np.flatnonzero(~half)))
    ends = np.array([(gain.value, gain.low, gain.high) for gain in gains])
    return _over_halves(picks, ends, n_rows)


def honest_gain(
    variants: Variants,
    baseline: Baseline,
    *,
    clusters: ArrayLike | None = None,
    n_splits: int = 100,
    seed: int = 0,
) -> HonestGain[int]:
    """The honest gain of the best variant.

    Either per-row scores, ``variants`` (V, n) and ``baseline`` (n,), or a metric for each. Ties go
    to the first variant.
    """
    sweep = sweep_of(variants, baseline, clusters)
    split = halves(sweep.n_rows, clusters=clusters, n_splits=n_splits, seed=seed)
    picks = sweep.best(split)
    ends = sweep.ends(picks, ~split, level=HALF_LEVEL, seed=seed)
    return _over_halves(picks.tolist(), ends, sweep.n_rows)


def naive_gain(
    variants: Variants,
    baseline: Baseline,
    *,
    clusters: ArrayLike | None = None,
    seed: int = 0,
) -> PickedGain:
    """The papers' way: picked and scored on the same rows. Too good by construction."""
    sweep = sweep_of(variants, baseline, clusters)
    return _picked(sweep, sweep, seed, "picked and scored on the same rows")


def gain_on_second_split(
    picked_on: tuple[Variants, Baseline],
    scored_on: tuple[Variants, Baseline],
    *,
    clusters: ArrayLike | None = None,
    seed: int = 0,
) -> PickedGain:
    """Picked on one labelled split, scored on another: each given as (variants, baseline).

    ``clusters`` are those of the split that is scored.
    """
    dev, other = sweep_of(*picked_on, None), sweep_of(*scored_on, clusters)
    if dev.n_variants != other.n_variants:
        raise RequestError(
            f"{dev.n_variants} variants to pick from and {other.n_variants} to score given,"
            " the same variants wanted"
        )
    return _picked(dev, other, seed, "picked on one split, scored on another")


def mean_gain(
    variants: ArrayLike,
    baseline: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    seed: int = 0,
) -> Interval:
    """The mean gain over all variants of per-row scores: the one claim free of selection."""
    difference = differences_of(variants, baseline).mean(axis=0)
    units = Units.of(clusters, len(difference))
    return bootstrap_difference(difference, units, level=0.95, repeats=2000, seed=seed)


def _picked(dev: Sweep, other: Sweep, seed: int, how: str) -> PickedGain:
    best = dev.best(np.ones((1, dev.n_rows), dtype=np.bool_))
    everything = np.ones((1, other.n_rows), dtype=np.bool_)
    value, low, high = other.ends(best, everything, level=0.95, seed=seed)[0].tolist()
    return PickedGain(int(best[0]), Interval(value, low, high, other.n_rows), how)


def _over_halves(picks: Sequence[V], ends: FloatArray, n_rows: int) -> HonestGain[V]:
    # A median of the values would lean to one side where their distribution over halves is skewed;
    # the mean has no bias: what is picked on one half knows nothing of the other.
    value = ends[:, 0].mean()
    low, high = np.median(ends[:, 1:], axis=0)
    shares = tuple((v, count / len(picks)) for v, count in Counter(picks).most_common())
    return HonestGain(Interval(float(value), float(low), float(high), n_rows), len(picks), shares)
