"""Scores with intervals: Wilson for the accuracy of independent rows, else the bootstrap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.errors import RequestError
from microtome.statistics import Interval, Metric, accuracy_interval, bootstrap, mean
from microtome.tasks.scoring.metrics import LABEL_METRICS, outcomes_of
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
    """Every metric of answers that are labels or numbers; the primary one comes first."""
    if not task.metrics or not set(task.metrics) <= set(LABEL_METRICS):
        raise RequestError(f"{task.name} ({task.kind}) has no metric of labels")
    return scores_of(outcomes_of(task, predicted, gold), clusters=clusters, seed=seed)


def scores_of(
    outcomes: Mapping[str, NDArray[np.float64] | Metric],
    *,
    clusters: NDArray[np.int64] | None = None,
    seed: int = 0,
) -> Scores:
    """Intervals of outcomes: means of one number per row, or functions of the rows' weights."""
    scores: Scores = {}
    for name, outcome in outcomes.items():
        if name == "accuracy" and isinstance(outcome, np.ndarray):
            scores[name] = accuracy_interval(outcome, clusters=clusters, seed=seed)
        else:
            metric = mean(outcome) if isinstance(outcome, np.ndarray) else outcome
            scores[name] = bootstrap(metric, clusters=clusters, seed=seed)
    return scores


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
