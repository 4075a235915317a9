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
from microtome.statistics.resampling import Units, chunk_sizes, draw_coins
from microtome.statistics.sweeps import differences_of
from microtome.statistics.weighted import Metric, minus, value_of

Scaling: TypeAlias = Literal["moderated", "full", "none"]


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

    ``needed`` is the difference that would have been significant, for each variant, given how
    many rows it changes; ``smallest_gain`` the least that any variant could have reached: one that
    turns whole rows right and none wrong (for other metrics, the least of ``needed``).
    """

    p: FloatArray  # (V,)
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

    Each repeat turns the differences of a row (or cluster) around by one random sign that all
    variants share, so the correction knows which variants move together.
    """
    differences = differences_of(variants, baseline)
    units = Units.of(clusters, differences.shape[1])
    by_unit = units.sums(differences.T)  # (units, V)
    by_unit = by_unit[(by_unit != 0).any(axis=1)]  # a row that nobody changes has no say
    rng = np.random.default_rng(seed)
    sizes = chunk_sizes(repeats, max(len(by_unit), 1))
    flipped = np.concatenate([_signs(rng, size, len(by_unit)) @ by_unit for size in sizes])
    # The sum of squares is the same whatever the signs, so it needs no estimate.
    scale = _Scale.of((by_unit**2).sum(axis=0), scaling)
    p, critical = _step_down(by_unit.sum(axis=0), flipped, scale.each, alpha)
    n = units.n_rows
    return MaxT(p, critical * scale.each / n, scale.least_gained(critical) / n)


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
        raise RequestError("0 variants given, at least 1 wanted")
    units = Units.of(clusters, baseline.n_rows)
    observed = np.array([value_of(minus(variant, baseline)) for variant in variants])
    rng = np.random.default_rng(seed)
    parts = []
    for coins in draw_coins(units, rng, repeats):
        swapped = (variant.swapped(baseline, coins) for variant in variants)
        parts.append(np.stack([ours - theirs for ours, theirs in swapped], axis=1))
    flipped = np.concatenate(parts)
    # The observed swap is one of the equally likely ones, so it has its part in the spread too.
    scale = _Scale.of((np.vstack([flipped, observed]) ** 2).mean(axis=0), scaling)
    p, critical = _step_down(observed, flipped, scale.each, alpha)
    needed = critical * scale.each
    return MaxT(p, needed, float(needed.min()))


@dataclass(frozen=True)
class _Scale:
    """What differences are divided by before the largest is looked for.

    ``full`` studentises: loud variants don't drown quiet ones, but a variant that really gains is
    loud for that very reason. ``none`` is the reverse. ``moderated`` adds the typical variant's
    spread to each and does well in both cases (docs/statistics.md has the simulation).
    """

    each: FloatArray  # (V,)
    own: float  # share of its own sum of squares that a variant is divided by: 0 or 1
    common: float

    @classmethod
    def of(cls, squares: FloatArray, scaling: Scaling) -> _Scale:
        moving = squares[squares > TIE]
        typical = float(np.median(moving)) if moving.size else 1.0
        own, common = {"moderated": (1.0, typical), "full": (1.0, 0.0), "none": (0.0, 1.0)}[scaling]
        each = np.sqrt(own * squares + common)
        return cls(np.where(each > TIE, each, 1.0), own, common)

    def least_gained(self, critical: float) -> int:
        """The fewest rows g, none lost, with g / sqrt(own · g + common) above ``critical``."""
        square = self.own * critical**2
        root = math.sqrt(square**2 + 4 * critical**2 * self.common)
        return math.ceil((square + root) / 2 - TIE)


def _step_down(
    observed: FloatArray, flipped: FloatArray, scale: FloatArray, alpha: float
) -> tuple[FloatArray, float]:
    """Corrected p-values (V,) and the scaled difference that the largest reaches by chance."""
    seen, chance = np.abs(observed) / scale, np.abs(flipped) / scale
    order = np.argsort(-seen, kind="stable")
    # Each variant competes with those that did no better than itself.
    rivals = np.maximum.accumulate(chance[:, order[::-1]], axis=1)[:, ::-1]  # (R, V)
    n_as_far = (rivals >= seen[order] - TIE).sum(axis=0)
    p = _back(order, np.maximum.accumulate((1 + n_as_far) / (1 + len(flipped))))
    return p, float(np.quantile(rivals[:, 0], 1 - alpha, method="higher"))


def _signs(rng: np.random.Generator, repeats: int, n: int) -> FloatArray:
    return 1.0 - 2.0 * rng.integers(0, 2, size=(repeats, n), dtype=np.int8).astype(np.float64)


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
