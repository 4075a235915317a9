"""Spearman's correlation of weighted rows, and differences of any metric from a baseline's.

Equal to ranking the repeated rows again (ties get their mean rank), without sorting again: a row's
rank is the weight below it plus half the weight level with it. Ranks of total weight T whose levels
weigh w₁, w₂, … have the square sum (T³ − Σ w³) / 12 around their mean, so it needs no pass of its
own where no two rows are level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from microtome.errors import RequestError
from microtome.statistics.intervals import FloatArray, IntArray, as_rows
from microtome.statistics.weighted import Metric, SumMetric, ratio, rows_of_pair


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's correlation; 0 where one side is constant."""

    predicted: FloatArray
    gold: FloatArray

    @property
    def n_rows(self) -> int:
        """How many rows it scores."""
        return len(self.gold)

    def __call__(self, weights: FloatArray) -> FloatArray:
        """Scores (R,) of the rows under each row of ``weights`` (R, n)."""
        return self.against(_WeightedGold.of(self._gold_levels, weights))

    def against(self, gold: _WeightedGold) -> FloatArray:
        """Scores (R,) against labels that are ranked already."""
        levels = self._predicted_levels
        by_level, rank = levels.weights(gold.by_row)
        cubes = (by_level**3).sum(axis=0) if levels.has_ties else gold.cubes
        rank -= by_level / 2  # not centred: the labels' ranks are
        products = np.einsum("kr,kr->r", levels.sums(gold.ranks), rank)
        return ratio(products, np.sqrt(_squares(gold.total, cubes) * gold.squares))

    def take(self, rows: IntArray) -> RankCorrelation:
        """The same metric of these rows alone."""
        return RankCorrelation(self.predicted[rows], self.gold[rows])

    def swapped(self, other: RankCorrelation, coins: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both metrics' scores (R,), with the rows whose coin (R, n) is 1 exchanged."""
        return _Pooled.of(self, other).scores(_sides(coins))

    @cached_property
    def _predicted_levels(self) -> _Levels:
        return _Levels.of(self.predicted)

    @cached_property
    def _gold_levels(self) -> _Levels:
        return _Levels.of(self.gold)

    @cached_property
    def _gold_ranks(self) -> FloatArray:
        """Centred ranks (n,) of the labels, every row once."""
        return self._gold_levels.ranks(np.ones((self.n_rows, 1)))[:, 0]


def spearman(predicted: ArrayLike, gold: ArrayLike) -> RankCorrelation:
    """Spearman's correlation; 0 where a side is constant."""
    predicted, gold = rows_of_pair(predicted, gold)
    return RankCorrelation(as_rows(predicted), as_rows(gold))


def scores_of(metrics: Sequence[Metric], weights: FloatArray) -> FloatArray:
    """Scores (V, R) of many metrics under the same ``weights`` (R, n).

    Labels that all of them share are ranked once: for 144 heads that is half of the work.
    """
    if not _share_labels(metrics):
        return np.stack([metric(weights) for metric in metrics])
    gold = _WeightedGold.of(metrics[0]._gold_levels, weights)
    return np.stack([metric.against(gold) for metric in metrics])


def swapped_differences(
    variants: Sequence[Metric], baseline: Metric, coins: Iterable[FloatArray]
) -> FloatArray:
    """Differences (R, V) of each variant from the baseline after swaps that all variants share.

    ``coins`` come in chunks (R, n): rows whose coin is 1 are exchanged.
    """
    metrics = [*variants, baseline]
    if _share_labels(metrics):
        pooled = [_Pooled.of(variant, metrics[-1]) for variant in metrics[:-1]]
        swaps = [[pair.scores(sides) for pair in pooled] for sides in map(_sides, coins)]
    else:
        swaps = [[variant.swapped(baseline, drawn) for variant in variants] for drawn in coins]
    differences = [[ours - theirs for ours, theirs in chunk] for chunk in swaps]
    return np.concatenate([np.stack(chunk, axis=1) for chunk in differences])


def _share_labels(metrics: Sequence[Metric]) -> TypeGuard[Sequence[RankCorrelation]]:
    ranked = [metric for metric in metrics if isinstance(metric, RankCorrelation)]
    if len(ranked) < len(metrics):
        return False
    return all(np.array_equal(metric.gold, ranked[0].gold) for metric in ranked[1:])


@dataclass(frozen=True)
class _WeightedGold:
    """The labels under R weightings: what all metrics of the same rows share."""

    by_row: FloatArray  # (n, R) weights
    ranks: FloatArray  # (n, R) weight times centred rank
    squares: FloatArray  # (R,) of the ranks
    total: FloatArray  # (R,) weight of all rows
    cubes: FloatArray  # (R,) sum of the rows' cubed weights

    @classmethod
    def of(cls, levels: _Levels, weights: FloatArray) -> _WeightedGold:
        by_row = np.ascontiguousarray(weights.T)  # picking rows then copies whole lines
        total, cubes = by_row.sum(axis=0), (by_row**3).sum(axis=0)
        by_level, _ = levels.weights(by_row)
        squares = _squares(total, (by_level**3).sum(axis=0))
        return cls(by_row, levels.ranks(by_row) * by_row, squares, total, cubes)


def _sides(coins: FloatArray) -> FloatArray:
    """Both models' answers below each other (2n, R): 1 where an answer counts as ours."""
    return np.concatenate([1 - coins, coins], axis=1).T.copy()


@dataclass(frozen=True)
class _Pooled:
    """Two models' answers in one order, for swaps: an answer that isn't ours is theirs."""

    levels: _Levels
    labels: FloatArray  # (2n,) centred ranks of both models' rows
    label_sums: FloatArray  # (K,) of each level
    label_squares: float  # of one model's rows: swapping moves no label
    counts: FloatArray  # (K,) answers of each level
    n_rows: int

    @classmethod
    def of(cls, ours: RankCorrelation, theirs: RankCorrelation) -> _Pooled:
        levels = _Levels.of(np.concatenate([ours.predicted, theirs.predicted]))
        labels = np.concatenate([ours._gold_ranks, theirs._gold_ranks])
        counts = np.diff(levels.ends, prepend=-1).astype(np.float64)
        squares = float(ours._gold_ranks @ ours._gold_ranks)
        sums = levels.sums(labels[:, None])[:, 0]
        return cls(levels, labels, sums, squares, counts, ours.n_rows)

    def scores(self, sides: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both correlations (R,) where ``sides`` (2n, R) is 1 for answers that count as ours."""
        by_level, rank = self.levels.weights(sides)
        rank -= by_level / 2
        if self.levels.has_ties:
            labels = self.levels.sums(self.labels[:, None] * sides)
        else:
            labels = self.label_sums[:, None] * by_level
        ours = np.einsum("kr,kr->r", labels, rank)
        # Our rank and theirs add up to that among all answers, our labels and theirs to all labels.
        pooled = self.levels.ends + 1 - self.counts / 2
        theirs = pooled @ self.label_sums - pooled @ labels - self.label_sums @ rank + ours
        return (
            ratio(ours, np.sqrt(self._squares(by_level) * self.label_squares)),
            ratio(theirs, np.sqrt(self._squares(by_level, theirs=True) * self.label_squares)),
        )

    def _squares(self, by_level: FloatArray, *, theirs: bool = False) -> FloatArray:
        """The square sum of one side's ranks (R,)."""
        total = np.full(by_level.shape[1], float(self.n_rows))
        if not self.levels.has_ties:
            return _squares(total, total)
        weights = self.counts[:, None] - by_level if theirs else by_level
        return _squares(total, (weights**3).sum(axis=0))


@dataclass(frozen=True)
class _Levels:
    """The distinct values of a column in order, and which one each row has."""

    order: IntArray  # rows, by value
    ends: IntArray  # (K,) last place of each level in that order
    level: IntArray  # level of each row

    @classmethod
    def of(cls, values: FloatArray) -> _Levels:
        _, level, counts = np.unique(values, return_inverse=True, return_counts=True)
        return cls(np.argsort(level, kind="stable"), np.cumsum(counts) - 1, level)

    @property
    def has_ties(self) -> bool:
        return len(self.ends) < len(self.order)

    def weights(self, by_row: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Each level's weight, and that of all levels up to it (K, R), from (n, R)."""
        by_level = by_row[self.order]
        up_to = np.cumsum(by_level, axis=0)
        if self.has_ties:
            up_to = up_to[self.ends]
            by_level = np.diff(up_to, axis=0, prepend=0.0)
        return by_level, up_to

    def sums(self, by_row: FloatArray) -> FloatArray:
        """Values of rows (n, R) added up by level (K, R)."""
        in_order = by_row[self.order]
        starts = np.concatenate([[0], self.ends[:-1] + 1])
        return np.add.reduceat(in_order, starts, axis=0) if self.has_ties else in_order

    def ranks(self, by_row: FloatArray) -> FloatArray:
        """Centred ranks (n, R) of rows weighted by ``by_row`` (n, R)."""
        by_level, up_to = self.weights(by_row)
        ranks: FloatArray = up_to - up_to[-1] / 2 - by_level / 2
        return ranks[self.level]


def _squares(total: FloatArray, cubes: FloatArray) -> FloatArray:
    """The square sum (R,) of centred ranks; what rounding leaves of a constant side is none."""
    squares = (total**3 - cubes) / 12
    return np.where(squares <= 1e-12 * total**3, 0.0, squares)


@dataclass(frozen=True)
class OfScores:
    """One number from the scores of several metrics on the same weighted rows."""

    metrics: Sequence[Metric]
    of_scores: Callable[[FloatArray], FloatArray]  # (V, R) -> (R,)

    @property
    def n_rows(self) -> int:
        """How many rows all of them score."""
        return self.metrics[0].n_rows

    def __call__(self, weights: FloatArray) -> FloatArray:
        """Numbers (R,) under each row of ``weights`` (R, n)."""
        return self.of_scores(scores_of(self.metrics, weights))


def _over_the_last(scores: FloatArray) -> FloatArray:
    """The mean of all scores (V, R) but the last, minus the last: (R,)."""
    return np.asarray(scores[:-1].mean(axis=0) - scores[-1])


def minus(variant: Metric, baseline: Metric) -> SumMetric | OfScores:
    """The difference of two metrics of the same rows, as a function of weighted rows."""
    return mean_minus([variant], baseline)


def mean_minus(variants: Sequence[Metric], baseline: Metric) -> SumMetric | OfScores:
    """The mean of the variants' metrics minus the baseline's, as a function of weighted rows.

    Its worst row is one that the baseline gets right and every variant wrong.
    """
    for variant in variants:
        if variant.n_rows != baseline.n_rows:
            raise RequestError(
                "expected the same rows of variant and baseline,"
                f" got {variant.n_rows} and {baseline.n_rows}"
            )
    sums_of = [metric for metric in (*variants, baseline) if isinstance(metric, SumMetric)]
    if len(sums_of) <= len(variants):
        return OfScores([*variants, baseline], _over_the_last)
    borders = np.cumsum([metric.columns.shape[1] for metric in sums_of[:-1]])
    *ours, base = sums_of

    def of_sums(sums: FloatArray) -> FloatArray:
        parts = zip(sums_of, np.split(sums, borders, axis=1), strict=True)
        return _over_the_last(np.stack([metric.of_sums(part) for metric, part in parts]))

    return SumMetric(
        np.concatenate([metric.columns for metric in sums_of], axis=1),
        of_sums,
        worst=np.concatenate([*(metric.worst for metric in ours), base.best], axis=1),
        best=np.concatenate([*(metric.best for metric in ours), base.worst], axis=1),
    )
