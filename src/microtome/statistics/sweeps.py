"""Many variants against one baseline on the same rows: pick the best, score what was picked.

Two kinds with one interface: per-row scores (accuracy, a token F1), where a sweep is a matrix of
differences, and any other metric, where it is a list of weighted metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microtome.errors import RequestError
from microtome.statistics.intervals import FloatArray, IntArray, Interval
from microtome.statistics.paired import paired_bootstrap, tango
from microtome.statistics.ranks import mean_minus, minus, scores_of
from microtome.statistics.resampling import (
    Draws,
    Units,
    bootstrap,
    draw_weights,
    interval_of,
    resample_together,
)
from microtome.statistics.weighted import Metric, SumMetric, mean

BoolArray: TypeAlias = NDArray[np.bool_]
Variants: TypeAlias = ArrayLike | Sequence[Metric]
Baseline: TypeAlias = ArrayLike | Metric

# Medians over many halves smooth out what fewer repeats leave rough.
REPEATS = 1000


def sweep_of(variants: Variants, baseline: Baseline, clusters: ArrayLike | None) -> Sweep:
    """A sweep from scores, (V, n) and (n,), or from one metric per variant and the baseline's."""
    if _are_metrics(variants):
        if not _is_metric(baseline):
            raise RequestError("expected a metric of the baseline too, got scores")
        mean_minus(variants, baseline)  # refuses other rows
        return MetricSweep(variants, baseline, Units.of(clusters, baseline.n_rows))
    if _is_metric(baseline):
        raise RequestError("expected a metric of each variant too, got scores")
    differences = differences_of(cast(ArrayLike, variants), cast(ArrayLike, baseline))
    return ScoreSweep(differences, Units.of(clusters, differences.shape[1]))


@dataclass(frozen=True)
class SweepGains:
    """Every variant's gain over the baseline, and the mean gain of all variants."""

    each: tuple[Interval, ...]
    mean: Interval


def sweep_gains(
    variants: Sequence[Metric],
    baseline: Metric,
    *,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    repeats: int = 2000,
    seed: int = 0,
) -> SweepGains:
    """What ``paired_bootstrap`` gives for every variant and ``mean_gain`` for all of them.

    All of them on one set of resamples, where that saves work: labels are ranked once instead of
    288 times for 144 heads.
    """
    units = Units.of(clusters, baseline.n_rows)
    average = mean_minus(variants, baseline)
    values = _minus_last(scores_of([*variants, baseline], np.ones((1, units.n_rows))))[:, 0]
    if isinstance(average, SumMetric):
        differences = [minus(variant, baseline) for variant in variants]
        sums = [one for one in (*differences, average) if isinstance(one, SumMetric)]
        draws = resample_together(sums, units, seed=seed, repeats=repeats)
    else:
        drawn = draw_weights(units, np.random.default_rng(seed), repeats)
        scores = [scores_of([*variants, baseline], weights) for weights in drawn]
        gains = _minus_last(np.concatenate(scores, axis=1))  # (V, repeats)
        draws = [Draws(gain, gain) for gain in (*gains, gains.mean(axis=0))]
    *each, mean_of_all = (
        interval_of(float(value), drawn, units, level=level)
        for value, drawn in zip((*values, values.mean()), draws, strict=True)
    )
    return SweepGains(tuple(each), mean_of_all)


def _minus_last(scores: FloatArray) -> FloatArray:
    return np.asarray(scores[:-1] - scores[-1])


def differences_of(variants: ArrayLike, baseline: ArrayLike) -> FloatArray:
    """Per-row differences (V, n) of the variants' scores (V, n) from the baseline's (n,)."""
    scores = np.asarray(variants, dtype=np.float64)
    base = np.asarray(baseline, dtype=np.float64)
    if scores.ndim != 2 or base.shape != scores.shape[1:]:
        raise RequestError(
            "expected scores (variants, rows) and a baseline (rows,),"
            f" got shapes {scores.shape} and {base.shape}"
        )
    if scores.size == 0:
        raise RequestError(
            "expected at least 1 variant and 1 row,"
            f" got {scores.shape[0]} variants on {scores.shape[1]} rows"
        )
    difference = scores - base
    if not np.isfinite(difference).all():
        raise RequestError("expected finite scores, got some that aren't")
    return difference


def bootstrap_difference(
    difference: FloatArray, units: Units, *, level: float, repeats: int, seed: int
) -> Interval:
    """The interval of a mean difference per row, which scores of 0 to 1 keep within -1 to 1."""
    lowest, highest = min(-1.0, difference.min()), max(1.0, difference.max())
    metric = mean(difference, lowest=lowest, highest=highest)
    return bootstrap(metric, clusters=units.of_row, level=level, repeats=repeats, seed=seed)


@dataclass(frozen=True)
class ScoreSweep:
    """Variants with one score per row.

    ``best`` picks one for each of S sets of rows, the first of equals; ``ends`` are value, low and
    high (S, 3) of the picks' gains, pick s on rows s of (S, n).
    """

    differences: FloatArray  # (V, n)
    units: Units

    def best(self, rows: BoolArray) -> IntArray:
        """The variant with the best mean on each of S sets of rows (S, n)."""
        # Rounding keeps equal sums equal, whatever the order they were added in.
        totals = rows.astype(np.float64) @ self.differences.T  # (S, V)
        return np.asarray(np.argmax(np.round(totals, 9), axis=1), dtype=np.int64)

    def ends(self, picks: IntArray, rows: BoolArray, *, level: float, seed: int) -> FloatArray:
        """Tango's ends where rows are right or wrong and independent, else the bootstrap's."""
        if self.units.of_row is None and self._right_or_wrong:
            return self._score_ends(picks, rows, level)
        return np.array(
            [self._drawn_ends(*pair, level, seed) for pair in zip(picks, rows, strict=True)]
        )

    def mean_gain(self, *, seed: int) -> Interval:
        """The mean of all variants' gains on all rows."""
        average = self.differences.mean(axis=0)
        return bootstrap_difference(average, self.units, level=0.95, repeats=2000, seed=seed)

    @cached_property
    def _right_or_wrong(self) -> bool:
        size = np.abs(self.differences)
        return bool(((size == 0) | (size == 1)).all())

    def _score_ends(self, picks: IntArray, rows: BoolArray, level: float) -> FloatArray:
        picked = self.differences[picks]  # (S, n)
        gained, lost = ((picked > 0) & rows).sum(axis=1), ((picked < 0) & rows).sum(axis=1)
        n = rows.sum(axis=1)
        low, high = tango(gained, lost, n, level=level)
        return np.stack([(gained - lost) / n, low, high], axis=1)

    def _drawn_ends(
        self, pick: int, rows: BoolArray, level: float, seed: int
    ) -> tuple[float, float, float]:
        kept = np.flatnonzero(rows)
        gain = bootstrap_difference(
            self.differences[pick, kept],
            self.units.take(kept),
            level=level,
            repeats=REPEATS,
            seed=seed,
        )
        return gain.value, gain.low, gain.high


@dataclass(frozen=True)
class MetricSweep:
    """Variants with a weighted metric each."""

    variants: Sequence[Metric]
    baseline: Metric
    units: Units

    def best(self, rows: BoolArray) -> IntArray:
        """The variant with the best metric on each of S sets of rows (S, n)."""
        weights = rows.astype(np.float64)
        scores = scores_of(self.variants, weights).T  # (S, V)
        return np.asarray(np.argmax(np.round(scores, 9), axis=1), dtype=np.int64)

    def ends(self, picks: IntArray, rows: BoolArray, *, level: float, seed: int) -> FloatArray:
        """The paired bootstrap's ends."""
        ends = []
        for pick, kept in zip(picks, map(np.flatnonzero, rows), strict=True):
            gain = paired_bootstrap(
                self.variants[pick].take(kept),
                self.baseline.take(kept),
                clusters=self.units.take(kept).of_row,
                level=level,
                repeats=REPEATS,
                seed=seed,
            )
            ends.append((gain.value, gain.low, gain.high))
        return np.array(ends)

    def mean_gain(self, *, seed: int) -> Interval:
        """The mean of all variants' gains on all rows."""
        average = mean_minus(self.variants, self.baseline)
        return bootstrap(average, clusters=self.units.of_row, seed=seed)


Sweep: TypeAlias = ScoreSweep | MetricSweep
"""Variants that can be picked on some rows and scored on others."""


def _is_metric(thing: object) -> TypeGuard[Metric]:
    return hasattr(thing, "n_rows") and hasattr(thing, "swapped")


def _are_metrics(things: object) -> TypeGuard[Sequence[Metric]]:
    return isinstance(things, list | tuple) and len(things) > 0 and all(map(_is_metric, things))
