"""Metrics as functions of weighted rows: the seam between metrics and resampling.

A bootstrap draws rows again, a cluster bootstrap draws groups of rows, a split into halves keeps
some rows, a swap permutation exchanges two models' answers. All four are weights on rows, so a
metric here is a function from weights (R, n) to scores (R,). Two kinds are enough so far:

* ``SumMetric``: a function of sums over rows (accuracy, F1, Matthews, Pearson, any mean);
* ``RankCorrelation`` (``ranks.py``): Spearman, whose ranks move with the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microtome.errors import RequestError
from microtome.statistics.intervals import FloatArray, IntArray, as_rows

Self_ = TypeVar("Self_", bound="Metric")


class Weighted(Protocol):
    """A number from weighted rows. Weight 0 leaves a row out, weight 2 counts it twice."""

    @property
    def n_rows(self) -> int:
        """How many rows it scores."""
        ...

    def __call__(self, weights: FloatArray) -> FloatArray:
        """Scores (R,) of the rows under each row of ``weights`` (R, n)."""
        ...


class Metric(Weighted, Protocol):
    """A score of a model's answers to weighted rows."""

    def take(self: Self_, rows: IntArray) -> Self_:
        """The same metric of these rows alone."""
        ...

    def swapped(self: Self_, other: Self_, coins: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both metrics' scores (R,), with the rows whose coin (R, n) is 1 exchanged."""
        ...


@dataclass(frozen=True)
class SumMetric:
    """``of_sums`` applied to the weighted sums of ``columns``.

    ``worst`` and ``best`` hold rows that hurt and help the score most, the same row of the data
    answered wrong and right. The bootstrap adds a little of them to its low and its high end, so
    that a perfect score doesn't get the interval [1, 1].
    """

    columns: FloatArray  # (n, k)
    of_sums: Callable[[FloatArray], FloatArray]  # (R, k) -> (R,)
    worst: FloatArray  # (m, k); m = 0 where no row is worst
    best: FloatArray

    @property
    def n_rows(self) -> int:
        """How many rows it scores."""
        return len(self.columns)

    def __call__(self, weights: FloatArray) -> FloatArray:
        """Scores (R,) of the rows under each row of ``weights`` (R, n)."""
        return self.of_sums(weights @ self.columns)

    def take(self, rows: IntArray) -> SumMetric:
        """The same metric of these rows alone."""
        return SumMetric(self.columns[rows], self.of_sums, self.worst, self.best)

    def swapped(self, other: SumMetric, coins: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both metrics' scores (R,), with the rows whose coin (R, n) is 1 exchanged."""
        return self.exchanged(other, coins @ (other.columns - self.columns))

    def exchanged(self, other: SumMetric, moved: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both metrics' scores (R,) after ``moved`` (R, k) went from its sums to ours."""
        ours, theirs = self.columns.sum(axis=0) + moved, other.columns.sum(axis=0) - moved
        return self.of_sums(ours), self.of_sums(theirs)


def ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """``above / below``, and 0 where that is 0/0: a constant answer has no correlation."""
    small = below <= 1e-12
    return np.where(small, 0.0, above / np.where(small, 1.0, below))


def _mean(sums: FloatArray) -> FloatArray:
    return ratio(sums[:, 0], sums[:, 1])


def _f1(sums: FloatArray) -> FloatArray:
    true_positive, false_positive, false_negative = sums.T
    return ratio(2 * true_positive, 2 * true_positive + false_positive + false_negative)


def _matthews(sums: FloatArray) -> FloatArray:
    n_labels = round(sums.shape[1] ** 0.5)
    table = sums.reshape(-1, n_labels, n_labels)  # gold × predicted
    gold, predicted, total = table.sum(axis=2), table.sum(axis=1), table.sum(axis=(1, 2))
    agreement = np.einsum("rkk->r", table) * total - (gold * predicted).sum(axis=1)
    spread = (total**2 - (gold**2).sum(axis=1)) * (total**2 - (predicted**2).sum(axis=1))
    return np.clip(ratio(agreement, np.sqrt(np.maximum(spread, 0.0))), -1.0, 1.0)


def _pearson(sums: FloatArray) -> FloatArray:
    n, x, y, xx, yy, xy = sums.T
    n = np.maximum(n, 1e-12)
    spread = _spread(n, x, xx) * _spread(n, y, yy)
    return np.clip(ratio(xy - x * y / n, np.sqrt(spread)), -1.0, 1.0)


def _spread(n: FloatArray, x: FloatArray, xx: FloatArray) -> FloatArray:
    # What rounding leaves of a constant column is no spread.
    spread = xx - x * x / n
    return np.where(spread <= 1e-12 * xx, 0.0, spread)


def mean(scores: ArrayLike, *, lowest: float = 0.0, highest: float = 1.0) -> SumMetric:
    """The mean of one score per row (a token F1, an exact match) with a known range."""
    rows = as_rows(scores)
    if rows.min() < lowest or rows.max() > highest:
        raise RequestError(
            f"expected scores from {lowest:g} to {highest:g}, got {rows.min():g} to {rows.max():g}"
        )
    columns = np.stack([rows, np.ones_like(rows)], axis=1)
    return SumMetric(columns, _mean, np.array([[lowest, 1.0]]), np.array([[highest, 1.0]]))


def share(right: ArrayLike, total: ArrayLike) -> SumMetric:
    """The share of units that are right, where every row has ``total`` of them (masked tokens).

    ``share([1, 0], [2, 1])`` is a third: rows count by their units.
    """
    n_right, n_units = as_rows(right), as_rows(total)
    if (n_right < 0).any() or (n_right > n_units).any():
        raise RequestError("expected from 0 to all of a row's units to be right")
    typical = float(n_units.mean())
    columns = np.stack([n_right, n_units], axis=1)
    return SumMetric(columns, _mean, np.array([[0.0, typical]]), np.array([[typical, typical]]))


def accuracy(predicted: ArrayLike, gold: ArrayLike) -> SumMetric:
    """The share of rows whose prediction is the gold label."""
    predicted, gold = rows_of_pair(predicted, gold)
    return mean(predicted == gold)


def f1(predicted: ArrayLike, gold: ArrayLike, *, positive: int | str | bool = 1) -> SumMetric:
    """F1 of the label ``positive``; 0 where nothing is, and nothing is called, positive."""
    predicted, gold = rows_of_pair(predicted, gold)
    called, real = predicted == positive, gold == positive
    columns = np.stack([called & real, called & ~real, ~called & real], axis=1).astype(np.float64)
    kinds = np.eye(3)
    # Gold negative, then gold positive; a negative that is called so leaves all three counts alone.
    return SumMetric(columns, _f1, worst=kinds[1:], best=np.stack([np.zeros(3), kinds[0]]))


def pooled_f1(right: ArrayLike, called: ArrayLike, real: ArrayLike) -> SumMetric:
    """F1 of items that rows have any number of: the entities of a sentence, the labels of a text.

    Per row: how many items were called and are real, how many were called, how many are real.
    ``pooled_f1([1], [2], [1])`` is two thirds.
    """
    n_right, n_called, n_real = as_rows(right), as_rows(called), as_rows(real)
    if (n_right < 0).any() or (n_right > np.minimum(n_called, n_real)).any():
        raise RequestError("expected no more right items than were called, and than are real")
    columns = np.stack([n_right, n_called - n_right, n_real - n_right], axis=1)
    typical = float(n_real.mean())
    return SumMetric(columns, _f1, np.array([[0, typical, typical]]), np.array([[typical, 0, 0]]))


def micro_f1(predicted: ArrayLike, gold: ArrayLike) -> SumMetric:
    """F1 of all labels of all rows together; both sides (n, labels) are true or false."""
    called, real = _label_tables(predicted, gold)
    return pooled_f1((called & real).sum(axis=1), called.sum(axis=1), real.sum(axis=1))


def macro_f1(predicted: ArrayLike, gold: ArrayLike) -> SumMetric:
    """The mean F1 of the labels, each counted alike; one that nobody has or calls has 0."""
    called, real = _label_tables(predicted, gold)
    n_labels = real.shape[1]
    columns = np.concatenate([called & real, called & ~real, ~called & real], axis=1, dtype=float)
    shares, nothing = real.mean(axis=0), np.zeros(n_labels)

    def of_sums(sums: FloatArray) -> FloatArray:
        by_label = sums.reshape(-1, 3, n_labels).transpose(0, 2, 1).reshape(-1, 3)
        return np.asarray(_f1(by_label).reshape(-1, n_labels).mean(axis=1))

    worst = np.concatenate([nothing, 1 - shares, shares])[None]
    return SumMetric(columns, of_sums, worst, np.concatenate([shares, nothing, nothing])[None])


def _label_tables(
    predicted: ArrayLike, gold: ArrayLike
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    called, real = np.asarray(predicted, dtype=bool), np.asarray(gold, dtype=bool)
    if called.shape != real.shape or real.ndim != 2 or not real.size:
        raise RequestError(
            "expected true or false for every row and label,"
            f" got shapes {called.shape} and {real.shape}"
        )
    return called, real


def matthews(predicted: ArrayLike, gold: ArrayLike, *, n_labels: int = 2) -> SumMetric:
    """Matthews correlation of labels 0..n_labels-1; 0 where a side is constant."""
    predicted, gold = rows_of_pair(predicted, gold)
    codes = gold * n_labels + predicted
    if np.min([predicted, gold]) < 0 or np.max([predicted, gold]) >= n_labels:
        raise RequestError(f"expected labels 0 to {n_labels - 1} for Matthews, got others")
    kinds = np.eye(n_labels * n_labels)
    right = np.arange(n_labels) * (n_labels + 1)
    wrong = np.arange(n_labels) * n_labels + (np.arange(n_labels) + 1) % n_labels
    return SumMetric(kinds[codes], _matthews, worst=kinds[wrong], best=kinds[right])


def pearson(predicted: ArrayLike, gold: ArrayLike) -> SumMetric:
    """Pearson's correlation; 0 where a side is constant."""
    predicted, gold = rows_of_pair(predicted, gold)
    x, y = as_rows(predicted), as_rows(gold)
    # Both on the gold scale: moment sums of raw values lose digits, and the columns of two models
    # must mean the same where a permutation mixes their rows.
    centre, scale = y.mean(), float(np.ptp(y)) or 1.0
    x, y = (x - centre) / scale, (y - centre) / scale
    columns = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
    nothing = np.empty((0, 6))
    return SumMetric(columns, _pearson, nothing, nothing)


def value_of(metric: Weighted) -> float:
    """The metric of its rows as they are."""
    return float(metric(np.ones((1, metric.n_rows)))[0])


def rows_of_pair(predicted: ArrayLike, gold: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Predictions and labels as arrays, one of each per row, at least one row."""
    predicted, gold = np.asarray(predicted), np.asarray(gold)
    if predicted.shape != gold.shape or predicted.ndim != 1:
        raise RequestError(
            "expected one prediction and one label per row,"
            f" got shapes {predicted.shape} and {gold.shape}"
        )
    if gold.size == 0:
        raise RequestError("expected at least 1 row of predictions, got none")
    return predicted, gold
