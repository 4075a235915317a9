"""What is the best of many worth? The best is picked on some rows and scored on others.

The best of 144 heads on the rows it was picked on looks good by luck alone. Here the rows (or
their clusters) are halved at random many times; the best is picked on one half and gets a 97.5 %
paired interval on the other; the medians of the ends are reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microtome.errors import RequestError
from microtome.statistics.intervals import FloatArray, IntArray, Interval
from microtome.statistics.resampling import Units
from microtome.statistics.sweeps import (
    Baseline,
    Sweep,
    Variants,
    sweep_of,
)
from microtome.statistics.weighted import Metric

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
        raise RequestError(f"expected at least 2 rows or clusters to halve, got {units.n}")
    if n_splits < 1:
        raise RequestError(f"n_splits must be at least 1, got {n_splits}")
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
    to the first variant. ``honest_gain(scores, baseline).gain`` is what to believe of the best of
    them; ``.picks`` says which variant won how many of the halves.
    """
    sweep = sweep_of(variants, baseline, clusters)
    split = halves(sweep.units.n_rows, clusters=clusters, n_splits=n_splits, seed=seed)
    picks = sweep.best(split)
    ends = sweep.ends(picks, ~split, level=HALF_LEVEL, seed=seed)
    return _over_halves(picks.tolist(), ends, sweep.units.n_rows)


def naive_gain(
    variants: Variants,
    baseline: Baseline,
    *,
    clusters: ArrayLike | None = None,
    seed: int = 0,
) -> PickedGain:
    """The papers' way: picked and scored on the same rows. Too good by construction."""
    sweep = sweep_of(variants, baseline, clusters)
    best = int(sweep.best(_all_rows(sweep))[0])
    return PickedGain(best, _gain(sweep, best, seed), "picked and scored on the same rows")


def gain_on_second_split(
    variants: Variants,
    baseline: Baseline,
    scored_on: Callable[[int], tuple[ArrayLike | Metric, Baseline]],
    *,
    clusters: ArrayLike | None = None,
    seed: int = 0,
) -> PickedGain:
    """The best variant is picked on one labelled split and scored on another.

    ``scored_on(i)`` gives variant i and the baseline on the second split: what isn't picked needn't
    be computed there. ``clusters`` are those of the second split.
    """
    picked_on = sweep_of(variants, baseline, None)
    best = int(picked_on.best(_all_rows(picked_on))[0])
    variant, second_baseline = scored_on(best)
    other = sweep_of(cast(Variants, [variant]), second_baseline, clusters)
    gain = _gain(other, 0, seed)
    return PickedGain(best, gain, "picked on one split, scored on another")


def mean_gain(
    variants: Variants,
    baseline: Baseline,
    *,
    clusters: ArrayLike | None = None,
    seed: int = 0,
) -> Interval:
    """The mean gain over all variants: the one claim free of selection.

    Either per-row scores, ``variants`` (V, n) and ``baseline`` (n,), or a metric for each: then the
    metric of every variant is taken on the same resampled rows (or clusters), and averaged.
    """
    sweep = sweep_of(variants, baseline, clusters)
    return sweep.mean_gain(seed=seed)


def _gain(sweep: Sweep, variant: int, seed: int) -> Interval:
    """One variant's gain on all rows."""
    ends = sweep.ends(np.array([variant]), _all_rows(sweep), level=0.95, seed=seed)
    value, low, high = ends[0].tolist()
    return Interval(value, low, high, sweep.units.n_rows)


def _all_rows(sweep: Sweep) -> NDArray[np.bool_]:
    return np.ones((1, sweep.units.n_rows), dtype=np.bool_)


def _over_halves(picks: Sequence[V], ends: FloatArray, n_rows: int) -> HonestGain[V]:
    # A median of the values would lean to one side where their distribution over halves is skewed;
    # the mean has no bias: what is picked on one half knows nothing of the other.
    value = ends[:, 0].mean()
    low, high = np.median(ends[:, 1:], axis=0)
    shares = tuple((v, count / len(picks)) for v, count in Counter(picks).most_common())
    return HonestGain(Interval(float(value), float(low), float(high), n_rows), len(picks), shares)
