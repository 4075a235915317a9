"""The official metrics by their names, in the weighted form that the statistics resample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from microtome import statistics
from microtome.statistics import Metric
from microtome.tasks.task import Task

Build = Callable[[NDArray[Any], NDArray[Any], Task], Metric]

_BUILDERS: dict[str, Build] = {
    "accuracy": lambda predicted, gold, _: statistics.accuracy(predicted, gold),
    # GLUE's positive class is label 1: equivalent, duplicate.
    "f1": lambda predicted, gold, _: statistics.f1(predicted, gold, positive=1),
    "matthews": lambda predicted, gold, task: statistics.matthews(
        predicted, gold, n_labels=len(task.labels)
    ),
    "pearson": lambda predicted, gold, _: statistics.pearson(predicted, gold),
    "spearman": lambda predicted, gold, _: statistics.spearman(predicted, gold),
}

METRICS = (*_BUILDERS, "exact_match")
"""Every metric name; on a span task ``f1`` and ``exact_match`` are means over questions."""


def metric_of(name: str, predicted: NDArray[Any], gold: NDArray[Any], task: Task) -> Metric:
    """The metric ``name`` of these answers, as a function of row weights."""
    return _BUILDERS[name](predicted, gold, task)


def value(name: str, predicted: NDArray[Any], gold: NDArray[Any], task: Task) -> float:
    """The plain score."""
    return statistics.value_of(metric_of(name, predicted, gold, task))
