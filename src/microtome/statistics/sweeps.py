"""Many variants against one baseline on the same rows: pick the best, score what was picked.

Two kinds behind one seam: per-row scores (accuracy, a token F1), where a sweep is a matrix of
differences, and any other metric, where it is a list of weighted metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microtome.errors import RequestError
from microtome.statistics.intervals import FloatArray, IntArray, Interval
from microtome.statistics.paired import paired_bootstrap, tango
from microtome.statistics.resampling import Units, bootstrap
from microtome.statistics.weighted import Metric, mean, minus

BoolArray: TypeAlias = NDArray[np.bool_]
Variants: TypeAlias = ArrayLike | Sequence[Metric]
Baseline: TypeAlias = ArrayLike | Metric

# Medians over many halves smooth out what fewer repeats leave rough.
REPEATS = 1000


class Sweep(Protocol):
    """Variants that can be picked on some rows and scored on others."""

    @property
    def n_rows(self) -> int:
        """How many rows all variants share."""
        ...

    @property
    def n_variants(self) -> int:
        """How many variants there are."""
        ...

    def best(self, rows: BoolArray) -> IntArray:
        """The variant with the best score on each of S sets of rows (S, n); the first of equals."""
        ...

    def ends(self, picks: IntArray, rows: BoolArray, *, level: float, seed: int) -> FloatArray:
        """Value, low and high (S, 3) of the picks' gains, each on its own set of rows (S, n)."""
        ...


def sweep_of(variants: Variants, baseline: Baseline, clusters: ArrayLike | None) -> Sweep:
    """A sweep from scores, (V, n) and (n,), or from one metric per variant and the baseline's."""
    if _are_metrics(variants):
        if not _is_metric(baseline):
            raise RequestError("metrics of variants given, a metric of the baseline wanted")
        for variant in variants:
            minus(variant, baseline)  # refuses other rows
        return MetricSweep(variants, baseline, Units.of(clusters, baseline.n_rows))
    if _is_metric(baseline):
        raise RequestError("a metric of the baseline given, a metric of each variant wanted")
    differences = differences_of(cast(ArrayLike, variants), cast(ArrayLike, baseline))
    return ScoreSweep(differences, Units.of(clusters, differences.shape[1]))


def differences_of(variants: ArrayLike, baseline: ArrayLike) -> FloatArray:
    """Per-row differences (V, n) of the variants' scores (V, n) from the baseline's (n,)."""
    scores = np.asarray(variants, dtype=np.float64)
    base = np.asarray(baseline, dtype=np.float64)
    if scores.ndim != 2 or base.shape != scores.shape[1:]:
        raise RequestError(
            f"scores of shape {scores.shape} and a baseline of shape {base.shape} given,"
            " (variants, rows) and (rows,) wanted"
        )
    if scores.size == 0:
        raise RequestError(
            f"{scores.shape[0]} variants on {scores.shape[1]} rows given, at least 1 of each wanted"
        )
    difference = scores - base
    if not np.isfinite(difference).all():
        raise RequestError("scores that are not finite numbers given")
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
    """Variants with one score per row."""

    differences: FloatArray  # (V, n)
    units: Units

    @property
    def n_rows(self) -> int:
        """How many rows all variants share."""
        return self.units.n_rows

    @property
    def n_variants(self) -> int:
        """How many variants there are."""
        return len(self.differences)

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

    @property
    def n_rows(self) -> int:
        """How many rows all variants share."""
        return self.baseline.n_rows

    @property
    def n_variants(self) -> int:
        """How many variants there are."""
        return len(self.variants)

    def best(self, rows: BoolArray) -> IntArray:
        """The variant with the best metric on each of S sets of rows (S, n)."""
        weights = rows.astype(np.float64)
        scores = np.stack([variant(weights) for variant in self.variants], axis=1)
        return np.asarray(np.argmax(np.round(scores, 9), axis=1), dtype=np.int64)

    def ends(self, picks: IntArray, rows: BoolArray, *, level: float, seed: int) -> FloatArray:
        """The paired bootstrap's ends."""
        found = []
        for pick, kept in zip(picks, map(np.flatnonzero, rows), strict=True):
            gain = paired_bootstrap(
                self.variants[pick].take(kept),
                self.baseline.take(kept),
                clusters=self.units.take(kept).of_row,
                level=level,
                repeats=REPEATS,
                seed=seed,
            )
            found.append((gain.value, gain.low, gain.high))
        return np.array(found)


def _is_metric(thing: object) -> TypeGuard[Metric]:
    return hasattr(thing, "n_rows") and hasattr(thing, "swapped")


def _are_metrics(things: object) -> TypeGuard[Sequence[Metric]]:
    return isinstance(things, list | tuple) and len(things) > 0 and all(map(_is_metric, things))
