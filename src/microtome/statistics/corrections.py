"""Many comparisons at once: Holm, Benjamini-Hochberg, and max-T by shared sign flips."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from microtome.errors import RequestError
from microtome.statistics.intervals import FloatArray
from microtome.statistics.paired import TIE
from microtome.statistics.ranks import minus, swapped_differences
from microtome.statistics.resampling import Units, chunk_sizes, draw_coins
from microtome.statistics.sweeps import differences_of
from microtome.statistics.weighted import Metric, value_of

Scaling: TypeAlias = Literal["moderated", "full", "none"]


def _p_values(p: ArrayLike) -> FloatArray:
    values = np.asarray(p, dtype=np.float64)
    wrong = values[~((values >= 0) & (values <= 1))]
    if values.ndim != 1 or wrong.size:
        got = wrong[0] if values.ndim == 1 else f"an array of shape {values.shape}"
        raise RequestError(f"expected a list of p-values from 0 to 1, got {got}")
    return values


def holm(p: ArrayLike) -> FloatArray:
    """Holm's step-down p-values: the chance of any false finding stays below alpha.

    ``holm([0.01, 0.04])`` gives 0.02 and 0.04, in the order of ``p``.
    """
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
    """Corrected p-values of a sweep, and the differences that would be significant.

    ``needed`` is the smallest significant difference of each variant, which depends on how many
    rows it changes; ``smallest_gain`` is the smallest of any variant: one that turns whole rows
    right and none wrong (for other metrics, the least of ``needed``). ``p_single`` is each
    variant's p-value by the same flips, as if it were the only one.
    """

    p: FloatArray  # (V,)
    p_single: FloatArray  # (V,)
    needed: FloatArray  # (V,)
    smallest_gain: float


def max_t(
    variants: ArrayLike,
    baseline: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    scaling: Scaling = "moderated",
    alpha: float = 0.05,
    repeats: int = 2000,
    seed: int = 0,
) -> MaxT:
    """Step-down max-T for per-row scores: ``variants`` (V, n) against ``baseline`` (n,).

    Each repeat flips the differences of a row (or cluster) by one random sign that all variants
    share, so the correction knows which variants move together. ``scaling`` is explained in
    docs/statistics.md.
    """
    differences = differences_of(variants, baseline)
    units = Units.of(clusters, differences.shape[1])
    by_unit = units.sums(differences.T)  # (units, V)
    by_unit = by_unit[(by_unit != 0).any(axis=1)]  # a row that no variant changes says nothing
    rng = np.random.default_rng(seed)
    coins = (
        rng.integers(0, 2, size=(size, len(by_unit)), dtype=np.int8).astype(np.float64)
        for size in chunk_sizes(repeats, max(len(by_unit), 1))
    )
    flipped = np.concatenate([(1.0 - 2.0 * drawn) @ by_unit for drawn in coins])
    # The sum of squares is the same whatever the signs, so it needs no estimate.
    scale = _Scale.of((by_unit**2).sum(axis=0), scaling)
    observed = by_unit.sum(axis=0)
    p, critical = _step_down(observed, flipped, scale.each, alpha)
    n = units.n_rows
    least = scale.least_gained(critical) / n
    return MaxT(p, _singly(observed, flipped), critical * scale.each / n, least)


def max_t_of_metrics(
    variants: Sequence[Metric],
    baseline: Metric,
    *,
    clusters: ArrayLike | None = None,
    scaling: Scaling = "moderated",
    alpha: float = 0.05,
    repeats: int = 2000,
    seed: int = 0,
) -> MaxT:
    """Step-down max-T for any metric: one coin per row (or cluster) swaps it for all variants."""
    if not variants:
        raise RequestError("expected at least 1 variant, got none")
    units = Units.of(clusters, baseline.n_rows)
    observed = np.array([value_of(minus(variant, baseline)) for variant in variants])
    rng = np.random.default_rng(seed)
    flipped = swapped_differences(variants, baseline, draw_coins(units, rng, repeats))
    # The observed swap is as likely as any other, so it counts in the spread too.
    scale = _Scale.of((np.vstack([flipped, observed]) ** 2).mean(axis=0), scaling)
    p, critical = _step_down(observed, flipped, scale.each, alpha)
    needed = critical * scale.each
    return MaxT(p, _singly(observed, flipped), needed, float(needed.min()))


@dataclass(frozen=True)
class _Scale:
    """What differences are divided by before the largest is looked for.

    ``full`` studentises: loud variants don't drown quiet ones, but a variant that really gains is
    loud for that very reason. ``none`` is the reverse. ``moderated`` adds the typical variant's
    spread to each and does well in both cases (docs/statistics-checked.md has the simulation).
    """

    each: FloatArray  # (V,)
    weight: float  # of a variant's sum of squares in what it is divided by: 0 or 1
    common: float

    @classmethod
    def of(cls, squares: FloatArray, scaling: Scaling) -> _Scale:
        moving = squares[squares > TIE]
        typical = float(np.median(moving)) if moving.size else 1.0
        weight, common = {
            "moderated": (1.0, typical),
            "full": (1.0, 0.0),
            "none": (0.0, 1.0),
        }[scaling]
        each = np.sqrt(weight * squares + common)
        return cls(np.where(each > TIE, each, 1.0), weight, common)

    def least_gained(self, critical: float) -> int:
        """The fewest rows g, none lost, with g / sqrt(weight · g + common) above ``critical``."""
        square = self.weight * critical**2
        root = math.sqrt(square**2 + 4 * critical**2 * self.common)
        return math.ceil((square + root) / 2 - TIE)


def _step_down(
    observed: FloatArray, flipped: FloatArray, scale: FloatArray, alpha: float
) -> tuple[FloatArray, float]:
    """Corrected p-values (V,) and the scaled difference that the largest reaches by chance."""
    measured, chance = np.abs(observed) / scale, np.abs(flipped) / scale
    order = np.argsort(-measured, kind="stable")
    # Each variant competes with those that did no better than itself.
    rivals = np.maximum.accumulate(chance[:, order[::-1]], axis=1)[:, ::-1]  # (R, V)
    n_as_far = (rivals >= measured[order] - TIE).sum(axis=0)
    p = _back(order, np.maximum.accumulate((1 + n_as_far) / (1 + len(flipped))))
    return p, float(np.quantile(rivals[:, 0], 1 - alpha, method="higher"))


def _singly(observed: FloatArray, flipped: FloatArray) -> FloatArray:
    """Uncorrected p-values (V,): how often a flip (R, V) goes as far as what was observed."""
    n_as_far = (np.abs(flipped) >= np.abs(observed) - TIE).sum(axis=0)
    return np.asarray((1 + n_as_far) / (1 + len(flipped)))


def smallest_gain(n_rows: int, n_comparisons: int = 1, *, alpha: float = 0.05) -> float:
    """The smallest gain in accuracy that McNemar with Holm could call significant.

    It is reached by a variant that loses no row; one that loses some needs more.
    """
    if n_rows < 1 or n_comparisons < 1:
        raise RequestError(
            f"expected at least 1 row and 1 comparison, got {n_rows} and {n_comparisons}"
        )
    # 2 · 2^-gained <= alpha / comparisons
    return math.ceil(1 - math.log2(alpha / n_comparisons) - TIE) / n_rows
