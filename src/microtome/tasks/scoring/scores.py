"""Scores with intervals: Wilson for the accuracy of independent rows, else the bootstrap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.errors import RequestError
from microtome.statistics import Interval, accuracy_interval, bootstrap, mean
from microtome.tasks.scoring.metrics import metric_of
from microtome.tasks.task import Task

Scores = dict[str, Interval]


def score(
    task: Task,
    predicted: NDArray[Any],
    gold: NDArray[Any],
    *,
    clusters: NDArray[np.int64] | None = None,
    seed: int = 0,
) -> Scores:
    """Every metric of a classification or regression task; the primary one comes first."""
    if not task.metrics or task.kind == "span":
        raise RequestError(f"{task.name} ({task.kind}) has no metric of labels")
    scores: Scores = {}
    for name in task.metrics:
        if name == "accuracy":
            right = np.asarray(predicted) == np.asarray(gold)
            scores[name] = accuracy_interval(right, clusters=clusters, seed=seed)
        else:
            metric = metric_of(name, predicted, gold, task)
            scores[name] = bootstrap(metric, clusters=clusters, seed=seed)
    return scores


def score_means(
    values: Mapping[str, NDArray[np.float64]],
    *,
    clusters: NDArray[np.int64] | None = None,
    seed: int = 0,
) -> Scores:
    """Means of one number per row (SQuAD's two metrics)."""
    return {
        name: bootstrap(mean(column), clusters=clusters, seed=seed)
        for name, column in values.items()
    }


def with_unlabelled(accuracy: Interval, n_unlabelled: int) -> Interval:
    """The accuracy where rows without a label count as wrong: the same answers, more rows."""
    n = accuracy.n + n_unlabelled
    share = accuracy.n / n
    return Interval(accuracy.value * share, accuracy.low * share, accuracy.high * share, n)


def as_json(interval: Interval) -> dict[str, float | int]:
    """A score as the command line's JSON has it."""
    return {
        "value": interval.value,
        "low": interval.low,
        "high": interval.high,
        "n": interval.n,
    }
