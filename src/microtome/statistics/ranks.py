"""Spearman's correlation of weighted rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from microtome.statistics.intervals import FloatArray, IntArray, as_rows
from microtome.statistics.weighted import ratio, rows_of_pair


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's correlation; 0 where one side is constant.

    Equal to ranking the repeated rows again (ties get their mean rank), without sorting again:
    a row's rank is the weight below it plus half the weight level with it.
    """

    predicted: FloatArray
    gold: FloatArray

    @property
    def n_rows(self) -> int:
        """How many rows it scores."""
        return len(self.gold)

    def __call__(self, weights: FloatArray) -> FloatArray:
        """Scores (R,) of the rows under each row of ``weights`` (R, n)."""
        by_row = np.ascontiguousarray(weights.T)  # (n, R): picking rows then copies whole lines
        x, xx = self._predicted_levels.ranks(by_row)
        y, yy = self._gold_levels.ranks(by_row)
        x *= by_row
        return ratio(np.einsum("nr,nr->r", x, y), np.sqrt(xx * yy))

    def take(self, rows: IntArray) -> RankCorrelation:
        """The same metric of these rows alone."""
        return RankCorrelation(self.predicted[rows], self.gold[rows])

    def swapped(self, other: RankCorrelation, coins: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Own and the other's scores (R,) with the rows whose coin (R, n) is 1 exchanged."""
        pooled = _Levels.of(np.concatenate([self.predicted, other.predicted]))
        y, yy = self._gold_levels.ranks(np.ones((self.n_rows, 1)))  # swapping moves no label
        y = np.concatenate([y[:, 0], y[:, 0]])
        ours = np.concatenate([1 - coins, coins], axis=1).T.copy()  # (2n, R): 1 = counts as ours
        return _fixed(pooled, ours, y, yy), _fixed(pooled, 1 - ours, y, yy)

    @cached_property
    def _predicted_levels(self) -> _Levels:
        return _Levels.of(self.predicted)

    @cached_property
    def _gold_levels(self) -> _Levels:
        return _Levels.of(self.gold)


def spearman(predicted: ArrayLike, gold: ArrayLike) -> RankCorrelation:
    """Spearman's correlation; 0 where a side is constant."""
    predicted, gold = rows_of_pair(predicted, gold)
    return RankCorrelation(as_rows(predicted), as_rows(gold))


def _fixed(levels: _Levels, by_row: FloatArray, y: FloatArray, yy: FloatArray) -> FloatArray:
    """The correlation of weighted ranks with ranks ``y`` that stay as they are."""
    x, xx = levels.ranks(by_row)
    x *= by_row
    return ratio(y @ x, np.sqrt(xx * yy))


@dataclass(frozen=True)
class _Levels:
    """The distinct values of a column in order, and which one each row has."""

    order: IntArray  # rows, by value
    ends: IntArray  # last place of each level in that order
    level: IntArray  # level of each row

    @classmethod
    def of(cls, values: FloatArray) -> _Levels:
        _, level, counts = np.unique(values, return_inverse=True, return_counts=True)
        return cls(np.argsort(level, kind="stable"), np.cumsum(counts) - 1, level)

    def ranks(self, by_row: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Centred ranks (n, R) of rows weighted by ``by_row`` (n, R), and their square sum (R,)."""
        level_weight = by_row[self.order]
        rank = np.cumsum(level_weight, axis=0)
        if len(self.ends) < len(self.order):  # ties
            rank = rank[self.ends]  # (levels, R)
            level_weight = np.diff(rank, axis=0, prepend=0.0)
        rank -= rank[-1] / 2 + level_weight / 2
        return rank[self.level], np.einsum("kr,kr,kr->r", level_weight, rank, rank)
