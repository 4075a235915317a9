"""Two models on the same rows: how much they differ, and whether chance explains it.

A difference is always ``variant - baseline``. For accuracy: McNemar's exact test and Tango's score
interval. For any other metric, and wherever rows come in clusters: swaps and the paired bootstrap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from microtome.errors import RequestError
from microtome.statistics.intervals import FloatArray, Interval, as_rows, z_of
from microtome.statistics.ranks import minus
from microtome.statistics.resampling import Units, bootstrap, draw_coins, kinds_of_rows
from microtome.statistics.weighted import Metric, SumMetric, mean, value_of

# Differences closer than this are ties: sums in another order differ in the last digits.
TIE = 1e-12


@dataclass(frozen=True)
class Comparison:
    """A paired difference with its interval, its p-value and the name of the test."""

    difference: Interval
    p: float
    test: str


def mcnemar(n_gained: ArrayLike, n_lost: ArrayLike, *, mid_p: bool = False) -> FloatArray:
    """McNemar's exact two-sided p from the rows gained and lost; works on arrays.

    ``mid_p`` counts the observed table half: closer to the nominal level, no longer a guarantee.
    """
    from scipy.special import bdtr

    gained, lost = np.asarray(n_gained, dtype=np.int64), np.asarray(n_lost, dtype=np.int64)
    changed, fewer = gained + lost, np.minimum(gained, lost)
    tail = bdtr(fewer.astype(np.float64), changed, 0.5)
    if mid_p:
        below = np.where(fewer > 0, bdtr(np.maximum(fewer - 1.0, 0.0), changed, 0.5), 0.0)
        tail = (tail + below) / 2
    return np.asarray(np.minimum(1.0, 2 * tail), dtype=np.float64)


def tango(
    n_gained: ArrayLike, n_lost: ArrayLike, n: ArrayLike, *, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Tango's (1998) score interval of (gained - lost)/n for paired shares; works on arrays."""
    gained, lost, n_rows = np.broadcast_arrays(
        *(np.asarray(count, dtype=np.float64) for count in (n_gained, n_lost, n))
    )
    z = z_of(level)
    difference = (gained - lost) / n_rows
    high = _score_end(gained, lost, n_rows, difference, np.ones_like(difference), -z)
    low = _score_end(gained, lost, n_rows, difference, -np.ones_like(difference), z)
    return low, high


def _score_end(
    gained: FloatArray,
    lost: FloatArray,
    n: FloatArray,
    inside: FloatArray,
    outside: FloatArray,
    z: float,
) -> FloatArray:
    # The score falls as the difference grows, so halving finds where it crosses z.
    for _ in range(50):
        middle = (inside + outside) / 2
        beyond = np.abs(_score(gained, lost, n, middle)) > abs(z)
        inside, outside = np.where(beyond, inside, middle), np.where(beyond, middle, outside)
    return outside


def _score(
    gained: FloatArray, lost: FloatArray, n: FloatArray, difference: FloatArray
) -> FloatArray:
    # The share lost that is most likely when the true difference is this one (Tango 1998, eq. 7).
    b = (2 * n - gained + lost) * difference - gained - lost
    c = -lost * difference * (1 - difference)
    share_lost = (np.sqrt(np.maximum(b * b - 8 * n * c, 0.0)) - b) / (4 * n)
    variance = n * (2 * share_lost + difference * (1 - difference))
    return np.asarray((gained - lost - n * difference) / np.sqrt(np.maximum(variance, 1e-300)))


def compare_accuracy(
    variant: ArrayLike,
    baseline: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Compares right (1) and wrong (0) answers of two models on the same rows.

    ``compare_accuracy([1, 1, 0], [1, 0, 0]).difference`` is the variant minus the baseline, ⅓, with
    its interval; with ``clusters`` the rows of a cluster are resampled together.
    """
    right, base = as_rows(variant, name="answers"), as_rows(baseline, name="answers")
    if right.shape != base.shape:
        raise RequestError(
            f"expected answers to the same rows, got {len(right)} and {len(base)} of them"
        )
    if not np.isin([right, base], (0.0, 1.0)).all():
        raise RequestError("expected answers 0 and 1, got others", "use compare_metric(mean(…), …)")
    if clusters is not None:
        return compare_metric(mean(right), mean(base), clusters=clusters, level=level, seed=seed)
    gained, lost = int((right > base).sum()), int((right < base).sum())
    low, high = tango(gained, lost, len(right), level=level)
    difference = Interval((gained - lost) / len(right), float(low), float(high), len(right))
    return Comparison(difference, float(mcnemar(gained, lost)), "exact McNemar")


def compare_metric(
    variant: Metric,
    baseline: Metric,
    *,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    repeats: int = 2000,
    seed: int = 0,
) -> Comparison:
    """Compares any metric of two models on the same rows: swap permutation and paired bootstrap."""
    difference = paired_bootstrap(
        variant, baseline, clusters=clusters, level=level, repeats=repeats, seed=seed
    )
    p = swap_permutation(variant, baseline, clusters=clusters, repeats=repeats, seed=seed)
    return Comparison(difference, p, "paired swap permutation")


def paired_bootstrap(
    variant: Metric,
    baseline: Metric,
    *,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    repeats: int = 2000,
    seed: int = 0,
) -> Interval:
    """The interval of ``variant - baseline``, both scored on the same resampled rows."""
    both = minus(variant, baseline)
    return bootstrap(both, clusters=clusters, level=level, repeats=repeats, seed=seed)


def swap_permutation(
    variant: Metric,
    baseline: Metric,
    *,
    clusters: ArrayLike | None = None,
    repeats: int = 2000,
    seed: int = 0,
) -> float:
    """The two-sided p-value when each row's (or cluster's) two answers are swapped by a coin."""
    both = minus(variant, baseline)
    units, observed = Units.of(clusters, both.n_rows), abs(value_of(both))
    rng = np.random.default_rng(seed)
    if isinstance(variant, SumMetric) and isinstance(baseline, SumMetric):
        swaps = [_swapped_sums(variant, baseline, units, rng, repeats)]
    else:
        swaps = [variant.swapped(baseline, coins) for coins in draw_coins(units, rng, repeats)]
    n_as_far = sum(int((np.abs(ours - theirs) >= observed - TIE).sum()) for ours, theirs in swaps)
    return (1 + n_as_far) / (1 + repeats)


def _swapped_sums(
    variant: SumMetric, baseline: SumMetric, units: Units, rng: np.random.Generator, repeats: int
) -> tuple[FloatArray, FloatArray]:
    # Units that move the sums alike are swapped as a count of them.
    kinds, counts = kinds_of_rows(units.sums(baseline.columns - variant.columns))
    moved = rng.binomial(counts, 0.5, size=(repeats, len(counts))) @ kinds
    return variant.exchanged(baseline, moved)
