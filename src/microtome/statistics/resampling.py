"""Drawing rows again: the bootstrap, by row or by cluster, and the random swaps of two models.

Deterministic by seed. Memory is bounded: weights exist a chunk of repeats at a time, and rows that
are alike (four kinds of them behind an F1) are drawn as counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from microtome.errors import RequestError
from microtome.statistics.intervals import FloatArray, IntArray, Interval, as_rows, wilson, z_of
from microtome.statistics.weighted import Metric, SumMetric, mean, value_of

CHUNK = 250_000  # weights held at once: 2 MB, so that passes over them stay in the cache


@dataclass(frozen=True)
class Units:
    """What is drawn as a whole: single rows, or clusters of rows."""

    of_row: IntArray | None  # cluster 0..n-1 of each row; None: each row is its own
    n: int
    n_rows: int

    @classmethod
    def of(cls, clusters: ArrayLike | None, n_rows: int) -> Units:
        """Units of ``n_rows`` rows; ``clusters`` names each row's cluster."""
        if n_rows < 1:
            raise RequestError("0 rows given, at least 1 wanted")
        if clusters is None:
            return cls(None, n_rows, n_rows)
        names = np.asarray(clusters)
        if names.shape != (n_rows,):
            raise RequestError(
                f"clusters of shape {names.shape} given, one per row wanted ({n_rows})"
            )
        distinct, of_row = np.unique(names, return_inverse=True)
        return cls(of_row.astype(np.int64), len(distinct), n_rows)

    def sums(self, columns: FloatArray) -> FloatArray:
        """Columns (n_rows, k) added up by unit."""
        if self.of_row is None:
            return columns
        total = np.zeros((self.n, columns.shape[1]))
        np.add.at(total, self.of_row, columns)
        return total

    def spread(self, per_unit: FloatArray) -> FloatArray:
        """One weight per unit (R, n) to one per row (R, n_rows)."""
        return per_unit if self.of_row is None else per_unit[:, self.of_row]

    def take(self, rows: IntArray) -> Units:
        """The units of these rows alone."""
        return Units.of(None if self.of_row is None else self.of_row[rows], len(rows))


@dataclass(frozen=True)
class Draws:
    """Resampled scores (R,), once with a trace of the worst rows added, once of the best.

    Low ends are read from ``low`` and high ends from ``high``. Where a metric has no worst row the
    two are the same.
    """

    low: FloatArray
    high: FloatArray


def resample(
    metrics: Sequence[Metric], units: Units, rng: np.random.Generator, repeats: int
) -> list[Draws]:
    """Each metric on the same ``repeats`` resamples of the units."""
    if _all_sums(metrics):
        return _resample_sums(metrics, units, rng, repeats)
    chunks = [
        [metric(weights) for metric in metrics] for weights in _drawn_weights(units, rng, repeats)
    ]
    scores = [np.concatenate(parts) for parts in zip(*chunks, strict=True)]
    return [Draws(score, score) for score in scores]


def _all_sums(metrics: Sequence[Metric]) -> TypeGuard[Sequence[SumMetric]]:
    return all(isinstance(metric, SumMetric) for metric in metrics)


def _drawn_weights(units: Units, rng: np.random.Generator, repeats: int) -> Iterator[FloatArray]:
    for size in chunk_sizes(repeats, units.n_rows):
        yield units.spread(draw_counts(units.n, size, rng))


def chunk_sizes(repeats: int, n: int) -> Iterator[int]:
    """Cuts ``repeats`` so that no chunk of them holds many more than CHUNK weights."""
    step = max(1, CHUNK // max(n, 1))
    for done in range(0, repeats, step):
        yield min(step, repeats - done)


def draw_counts(n: int, repeats: int, rng: np.random.Generator) -> FloatArray:
    """How often each of ``n`` units comes up in ``n`` draws with replacement: (repeats, n)."""
    drawn = rng.integers(0, n, size=(repeats, n)) + n * np.arange(repeats)[:, None]
    return np.bincount(drawn.ravel(), minlength=repeats * n).reshape(repeats, n).astype(np.float64)


def _resample_sums(
    metrics: Sequence[SumMetric], units: Units, rng: np.random.Generator, repeats: int
) -> list[Draws]:
    columns = units.sums(np.concatenate([metric.columns for metric in metrics], axis=1))
    sums = draw_sums(columns, rng, repeats)
    # One draw of the unseen row for all metrics: it is the same row, answered differently.
    n_unseen = max(max(len(metric.worst), len(metric.best)) for metric in metrics)
    unseen = rng.exponential(size=(repeats, n_unseen))
    borders = np.cumsum([metric.columns.shape[1] for metric in metrics])[:-1]
    return [
        Draws(
            metric.of_sums(own + unseen[:, : len(metric.worst)] @ metric.worst),
            metric.of_sums(own + unseen[:, : len(metric.best)] @ metric.best),
        )
        for metric, own in zip(metrics, np.split(sums, borders, axis=1), strict=True)
    ]


def draw_sums(columns: FloatArray, rng: np.random.Generator, repeats: int) -> FloatArray:
    """Sums (repeats, k) of the rows of ``columns`` (n, k) drawn with replacement."""
    n = len(columns)
    kinds, counts = kinds_of_rows(columns)
    if len(kinds) * 4 <= n:
        return rng.multinomial(n, counts / n, size=repeats) @ kinds
    return np.concatenate([draw_counts(n, size, rng) @ columns for size in chunk_sizes(repeats, n)])


def kinds_of_rows(columns: FloatArray) -> tuple[FloatArray, IntArray]:
    """The distinct rows and how often each occurs; the rows themselves where most differ."""
    looked_at = columns[:512]
    if len(np.unique(looked_at, axis=0)) * 4 > len(looked_at):
        return columns, np.ones(len(columns), dtype=np.int64)
    kinds, counts = np.unique(columns, axis=0, return_counts=True)
    return kinds, counts


def tail_of(level: float, n_units: int) -> float:
    """The tail of the resampled scores to cut off on each side.

    Percentiles are too narrow for few units: their spread lacks a factor n/(n-1), and a normal
    tail stands where Student's belongs. Cutting less off repairs both.
    """
    from scipy.special import ndtr, stdtrit

    n = max(n_units, 2)
    z_of(level)
    return float(ndtr((n / (n - 1)) ** 0.5 * stdtrit(n - 1, (1 - level) / 2)))


def ends_of(draws: Draws, level: float, n_units: int) -> tuple[float, float]:
    """Low and high end of an interval from resampled scores; steps are taken outwards."""
    tail = tail_of(level, n_units)
    low = np.quantile(draws.low, tail, method="lower")
    high = np.quantile(draws.high, 1 - tail, method="higher")
    return float(low), float(high)


def bootstrap(
    metric: Metric,
    *,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    repeats: int = 2000,
    seed: int = 0,
) -> Interval:
    """The interval of any metric, by drawing its rows (or their clusters) again."""
    units = Units.of(clusters, metric.n_rows)
    (draws,) = resample([metric], units, np.random.default_rng(seed), repeats)
    value = value_of(metric)
    low, high = ends_of(draws, level, units.n)
    return Interval(value, min(low, value), max(high, value), metric.n_rows)


def accuracy_interval(
    right: ArrayLike, *, clusters: ArrayLike | None = None, level: float = 0.95, seed: int = 0
) -> Interval:
    """The interval of an accuracy from right (1) and wrong (0) rows.

    Wilson's for independent rows; where rows come in clusters, the bootstrap by cluster.
    """
    rows = as_rows(right, name="answers")
    if not np.isin(rows, (0.0, 1.0)).all():
        raise RequestError("answers other than 0 and 1 given", "use bootstrap(mean(scores))")
    if clusters is not None:
        return bootstrap(mean(rows), clusters=clusters, level=level, seed=seed)
    return wilson(int(rows.sum()), len(rows), level=level)
