"""Drawing rows again: the bootstrap, by row or by cluster, and the random swaps of two models.

Deterministic by seed. Memory is bounded: weights exist a chunk of repeats at a time, and rows that
are alike (an F1 knows four kinds) are drawn as counts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from microtome.errors import RequestError
from microtome.statistics.intervals import FloatArray, IntArray, Interval, as_rows, wilson, z_of
from microtome.statistics.weighted import SumMetric, Weighted, mean, value_of

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
            raise RequestError("expected at least 1 row, got none")
        if clusters is None:
            return cls(None, n_rows, n_rows)
        names = np.asarray(clusters)
        if names.shape != (n_rows,):
            raise RequestError(
                f"expected one cluster for each of {n_rows} rows, got shape {names.shape}"
            )
        distinct, of_row = np.unique(names, return_inverse=True)
        if len(distinct) == n_rows:
            return cls(None, n_rows, n_rows)
        return cls(of_row.astype(np.int64), len(distinct), n_rows)

    def sums(self, columns: FloatArray) -> FloatArray:
        """Columns (n_rows, k) added up by unit."""
        if self.of_row is None:
            return columns
        by_column = [np.bincount(self.of_row, column, minlength=self.n) for column in columns.T]
        return np.stack(by_column, axis=1)

    def spread(self, per_unit: FloatArray) -> FloatArray:
        """One weight per unit (R, n) to one per row (R, n_rows)."""
        return per_unit if self.of_row is None else per_unit[:, self.of_row]

    def take(self, rows: IntArray) -> Units:
        """The units of these rows alone."""
        return Units.of(None if self.of_row is None else self.of_row[rows], len(rows))


@dataclass(frozen=True)
class Draws:
    """Resampled scores (R,), once with a little of the worst rows added, once of the best.

    Data that hold no wrong row, or one bad cluster of fifty, still leave room for another: a
    resample gets it with a weight drawn from the exponential distribution, whose 97.5 % point, 3.7
    rows, is the exact limit for an event that never occurred. Low ends are read from ``low`` and
    high ends from ``high``.
    """

    low: FloatArray
    high: FloatArray


def resample(metric: Weighted, units: Units, rng: np.random.Generator, repeats: int) -> Draws:
    """The metric on ``repeats`` resamples of the units."""
    if isinstance(metric, SumMetric):
        return _resample_sums(metric, units, rng, repeats)
    scores = np.concatenate([metric(weights) for weights in draw_weights(units, rng, repeats)])
    return Draws(scores, scores)


def draw_weights(units: Units, rng: np.random.Generator, repeats: int) -> Iterator[FloatArray]:
    """Chunks of weights (R, n_rows): how often each row's unit is drawn."""
    for size in chunk_sizes(repeats, units.n_rows):
        yield units.spread(draw_counts(units.n, size, rng))


def draw_coins(units: Units, rng: np.random.Generator, repeats: int) -> Iterator[FloatArray]:
    """Chunks of fair coins (R, n_rows), 0 or 1, one per unit."""
    for size in chunk_sizes(repeats, 2 * units.n_rows):
        coins = rng.integers(0, 2, size=(size, units.n), dtype=np.int8)
        yield units.spread(coins.astype(np.float64))


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
    metric: SumMetric, units: Units, rng: np.random.Generator, repeats: int
) -> Draws:
    columns = units.sums(metric.columns)
    return _with_unseen(metric, columns, draw_sums(columns, rng, repeats), rng)


def resample_together(
    metrics: Sequence[SumMetric], units: Units, *, seed: int, repeats: int
) -> list[Draws]:
    """``resample`` of every metric by a generator of its own with this ``seed``.

    Metrics whose rows are all different (Pearson's) need the same draws then: these are made once,
    which is most of the work.
    """
    by_unit = [units.sums(metric.columns) for metric in metrics]
    alike = [_few_kinds(columns) is not None for columns in by_unit]
    sums: list[list[FloatArray]] = [[] for _ in metrics]
    rng = np.random.default_rng(seed)
    for size in chunk_sizes(repeats, units.n) if not all(alike) else ():
        counts = draw_counts(units.n, size, rng)
        for columns, parts, is_counted in zip(by_unit, sums, alike, strict=True):
            if not is_counted:
                parts.append(counts @ columns)
    return [
        _resample_sums(metric, units, np.random.default_rng(seed), repeats)
        if is_counted
        else _with_unseen(metric, columns, np.concatenate(parts), copy.deepcopy(rng))
        for metric, columns, parts, is_counted in zip(metrics, by_unit, sums, alike, strict=True)
    ]


def _with_unseen(
    metric: SumMetric, columns: FloatArray, sums: FloatArray, rng: np.random.Generator
) -> Draws:
    """Scores of resampled sums (R, k) of the units' ``columns``, with what wasn't seen added."""
    total = columns.sum(axis=0)
    without = metric.of_sums(total - columns)  # (units,): highest without the worst unit
    worst = _unseen(metric.of_sums, total, metric.worst, columns[np.argmax(without)], -1)
    best = _unseen(metric.of_sums, total, metric.best, columns[np.argmin(without)], 1)
    weight = rng.exponential(size=(len(sums), max(len(worst), len(best))))
    low = metric.of_sums(sums + weight[:, : len(worst)] @ worst)
    high = metric.of_sums(sums + weight[:, : len(best)] @ best)
    return Draws(low, high)


def _unseen(
    of_sums: Callable[[FloatArray], FloatArray],
    total: FloatArray,
    rows: FloatArray,
    seen: FloatArray,
    direction: int,
) -> FloatArray:
    """The metric's extreme rows, and the most extreme unit seen where it goes further than they."""
    with_row, with_seen = of_sums(total + rows), of_sums(total + seen[None])[0]
    further = (with_seen - with_row) * direction > 1e-12
    return np.vstack([rows, seen]) if further.all() else rows


def draw_sums(columns: FloatArray, rng: np.random.Generator, repeats: int) -> FloatArray:
    """Sums (repeats, k) of the rows of ``columns`` (n, k) drawn with replacement."""
    n = len(columns)
    few = _few_kinds(columns)
    if few is not None:
        kinds, counts = few
        return rng.multinomial(n, counts / n, size=repeats) @ kinds
    return np.concatenate([draw_counts(n, size, rng) @ columns for size in chunk_sizes(repeats, n)])


def _few_kinds(columns: FloatArray) -> tuple[FloatArray, IntArray] | None:
    """The distinct rows and how often each occurs, where counting them is worth it."""
    kinds, counts = kinds_of_rows(columns)
    return (kinds, counts) if len(kinds) * 4 <= len(columns) else None


def kinds_of_rows(columns: FloatArray) -> tuple[FloatArray, IntArray]:
    """The distinct rows and how often each occurs; the rows themselves where most differ."""
    looked_at = columns[:512]
    if len(_distinct(looked_at)[0]) * 4 > len(looked_at):
        return columns, np.ones(len(columns), dtype=np.int64)
    return _distinct(columns)


def _distinct(columns: FloatArray) -> tuple[FloatArray, IntArray]:
    in_order = columns[np.lexsort(columns.T)]
    starts = np.flatnonzero(np.r_[True, (in_order[1:] != in_order[:-1]).any(axis=1)])
    return in_order[starts], np.diff(np.r_[starts, len(columns)])


def tail_of(level: float, n_units: int) -> float:
    """The tail of the resampled scores to cut off on each side.

    Percentiles are too narrow for few units: their spread lacks a factor n/(n-1), and a normal
    tail is used where Student's belongs. Cutting less off repairs both.
    """
    from scipy.special import ndtr, stdtrit

    n = max(n_units, 2)
    z_of(level)
    return float(ndtr((n / (n - 1)) ** 0.5 * stdtrit(n - 1, (1 - level) / 2)))


def bootstrap(
    metric: Weighted,
    *,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    repeats: int = 2000,
    seed: int = 0,
) -> Interval:
    """The interval of any metric, by drawing its rows (or their clusters) again.

    ``bootstrap(f1(predicted, gold), clusters=articles)`` resamples whole articles.
    """
    units = Units.of(clusters, metric.n_rows)
    draws = resample(metric, units, np.random.default_rng(seed), repeats)
    return interval_of(value_of(metric), draws, units, level=level)


def interval_of(value: float, draws: Draws, units: Units, *, level: float) -> Interval:
    """A value with the interval of its resamples, which always holds it."""
    tail = tail_of(level, units.n)
    low = float(np.quantile(draws.low, tail, method="lower"))  # steps are taken outwards
    high = float(np.quantile(draws.high, 1 - tail, method="higher"))
    return Interval(value, min(low, value), max(high, value), units.n_rows)


def accuracy_interval(
    right: ArrayLike, *, clusters: ArrayLike | None = None, level: float = 0.95, seed: int = 0
) -> Interval:
    """The interval of an accuracy from right (1) and wrong (0) rows.

    Wilson's for independent rows; where rows come in clusters, the bootstrap by cluster.
    """
    rows = as_rows(right, name="answers")
    if not np.isin(rows, (0.0, 1.0)).all():
        raise RequestError("expected answers 0 and 1, got others", "use bootstrap(mean(scores))")
    if clusters is not None:
        return bootstrap(mean(rows), clusters=clusters, level=level, seed=seed)
    return wilson(int(rows.sum()), len(rows), level=level)
