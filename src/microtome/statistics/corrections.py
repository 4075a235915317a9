"""Many comparisons at once: Holm, Benjamini-Hochberg, and max-T by shared sign flips."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from microtome.errors import RequestError
from microtome.statistics.intervals import FloatArray
from microtome.statistics.paired import TIE, units_of_pair
from microtome.statistics.resampling import Units, chunk_sizes
from microtome.statistics.sweeps import differences_of
from microtome.statistics.weighted import Metric, value_of


def _p_values(p: ArrayLike) -> FloatArray:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise RequestError("a list of p-values, each between 0 and 1, wanted")
    return values


def holm(p: ArrayLike) -> FloatArray:
    """Holm's step-down p-values: the chance of any false finding stays below alpha."""
    values = _p_values(p)
    order = np.argsort(values, kind="stable")
    stepped = values[order] * (len(values) - np.arange(len(values)))
    return _back(order, np.minimum(np.maximum.accumulate(stepped), 1.0))


def benjamini_hochberg(p: ArrayLike) -> FloatArray:
    """Benjamini-Hochberg's p-values: the expected share of false findings stays below alpha."""
    values = _p_values(p)
    order = np.argsort(-values, kind="stable")
    stepped = values[order] * len(values) / (len(values) - np.arange(len(values)))
    return _back(order, np.minimum(np.minimum.accumulate(stepped), 1.0))


def _back(order: np.ndarray, sorted_values: FloatArray) -> FloatArray:
    values = np.empty_like(sorted_values)
    values[order] = sorted_values
    return values


@dataclass(frozen=True)
class MaxT:
    """Corrected p-values of a sweep, and what a variant would have needed.

    ``critical`` is the studentised difference that the largest of all variants passes by chance in
    5 % of the flips (or whatever ``alpha`` was); ``needed`` the difference that is for each
    variant, given how many rows it changes.
    """

    p: FloatArray  # (V,)
    critical: float
    needed: FloatArray  # (V,)


def max_t(
    variants: ArrayLike,
    baseline: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    alpha: float = 0.05,
    repeats: int = 2000,
    seed: int = 0,
) -> MaxT:
    """Step-down max-T for per-row scores: ``variants`` (V, n) against ``baseline`` (n,).

    Each repeat turns the differences of a row (or cluster) around by one random sign that all
    variants share, so the correction knows which variants move together.
    """
    differences = differences_of(variants, baseline)
    units = Units.of(clusters, differences.shape[1])
    by_unit = units.sums(differences.T)  # (units, V)
    by_unit = by_unit[(by_unit != 0).any(axis=1)]  # a row that nobody changes has no say
    # The sum of squares is the same whatever the signs: dividing by it studentises for good.
    scale = _no_zero(np.sqrt((by_unit**2).sum(axis=0)))
    rng = np.random.default_rng(seed)
    # (repeats, V): the one large array; the signs are drawn a chunk at a time.
    flipped = np.concatenate(
        [
            np.abs(rng.choice((-1.0, 1.0), size=(size, len(by_unit))) @ by_unit) / scale
            for size in chunk_sizes(repeats, max(len(by_unit), 1))
        ]
    )
    observed = np.abs(by_unit.sum(axis=0)) / scale
    return _corrected(observed, flipped, scale / units.n_rows, alpha)


def max_t_of_metrics(
    variants: Sequence[Metric],
    baseline: Metric,
    *,
    clusters: ArrayLike | None = None,
    alpha: float = 0.05,
    repeats: int = 2000,
    seed: int = 0,
) -> MaxT:
    """Step-down max-T for any metric: one coin per row (or cluster) swaps it for all variants."""
    if not variants:
        raise RequestError("0 variants given, at least 1 wanted")
    units = units_of_pair(variants[0], baseline, clusters)
    rng = np.random.default_rng(seed)
    parts = []
    for size in chunk_sizes(repeats, 2 * units.n_rows):
        coins = units.spread(rng.integers(0, 2, size=(size, units.n)).astype(np.float64))
        swapped = (variant.swapped(baseline, coins) for variant in variants)
        parts.append(np.stack([ours - theirs for ours, theirs in swapped], axis=1))
    flipped = np.concatenate(parts)
    observed = np.array([value_of(variant) for variant in variants]) - value_of(baseline)
    # The observed swap is one of the equally likely ones, so it has its part in the spread too.
    scale = _no_zero(np.sqrt((np.vstack([flipped, observed]) ** 2).mean(axis=0)))
    return _corrected(np.abs(observed) / scale, np.abs(flipped) / scale, scale, alpha)


def _no_zero(scale: FloatArray) -> FloatArray:
    return np.where(scale > TIE, scale, 1.0)


def _corrected(observed: FloatArray, flipped: FloatArray, unit: FloatArray, alpha: float) -> MaxT:
    order = np.argsort(-observed, kind="stable")
    # Step-down: each variant competes with those that did no better than itself.
    rivals = np.maximum.accumulate(flipped[:, order[::-1]], axis=1)[:, ::-1]  # (R, V)
    n_as_far = (rivals >= observed[order] - TIE).sum(axis=0)
    stepped = np.maximum.accumulate((1 + n_as_far) / (1 + len(flipped)))
    critical = float(np.quantile(rivals[:, 0], 1 - alpha, method="higher"))
    return MaxT(_back(order, stepped), critical, critical * unit)


def smallest_gain(n_rows: int, n_comparisons: int = 1, *, alpha: float = 0.05) -> float:
    """The smallest gain in accuracy that McNemar with Holm could call significant.

    It is reached by a variant that loses no row; one that loses some needs more.
    """
    if n_rows < 1 or n_comparisons < 1:
        raise RequestError(
            f"{n_rows} rows and {n_comparisons} comparisons given, at least 1 wanted"
        )
    # 2 · 2^-gained <= alpha / comparisons
    return math.ceil(1 - math.log2(alpha / n_comparisons) - TIE) / n_rows


def smallest_gain_max_t(sweep: MaxT, n_rows: int) -> float:
    """The smallest gain in accuracy that this max-T sweep could call significant.

    A variant that gains g rows and loses none has the studentised difference g / sqrt(g).
    """
    return math.ceil(sweep.critical**2 - TIE) / n_rows
