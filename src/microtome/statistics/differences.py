"""Metrics of variants minus that of a baseline, as functions of weighted rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from microtome.errors import RequestError
from microtome.statistics.intervals import FloatArray
from microtome.statistics.ranks import scores_of
from microtome.statistics.weighted import Metric, SumMetric


@dataclass(frozen=True)
class Difference:
    """The variants' mean minus the baseline on the same weighted rows; ``mean_minus`` makes it."""

    variants: Sequence[Metric]
    baseline: Metric

    @property
    def n_rows(self) -> int:
        """How many rows all of them score."""
        return self.baseline.n_rows

    def __call__(self, weights: FloatArray) -> FloatArray:
        """Differences (R,) under each row of ``weights`` (R, n)."""
        *scores, baseline_scores = scores_of([*self.variants, self.baseline], weights)
        return np.asarray(np.mean(scores, axis=0) - baseline_scores)


def minus(variant: Metric, baseline: Metric) -> SumMetric | Difference:
    """The difference of two metrics of the same rows, as a function of weighted rows."""
    return mean_minus([variant], baseline)


def mean_minus(variants: Sequence[Metric], baseline: Metric) -> SumMetric | Difference:
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
        return Difference(variants, baseline)
    borders = np.cumsum([metric.columns.shape[1] for metric in sums_of[:-1]])
    *ours, base = sums_of

    def of_sums(sums: FloatArray) -> FloatArray:
        parts = zip(sums_of, np.split(sums, borders, axis=1), strict=True)
        *scores, baseline_scores = (metric.of_sums(part) for metric, part in parts)
        return np.asarray(np.mean(scores, axis=0) - baseline_scores)

    return SumMetric(
        np.concatenate([metric.columns for metric in sums_of], axis=1),
        of_sums,
        worst=np.concatenate([*(metric.worst for metric in ours), base.best], axis=1),
        best=np.concatenate([*(metric.best for metric in ours), base.worst], axis=1),
    )
