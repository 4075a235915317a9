"""The official metrics by their names, in the weighted form that the statistics resample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome import statistics
from microtome.statistics import Metric
from microtome.tasks.task import Task

Build = Callable[[NDArray[Any], NDArray[Any], Task], Metric]

_BUILDERS: dict[str, Build] = {
    "accuracy": lambda predicted, gold, _: statistics.mean(_right(predicted, gold)),
    # GLUE's positive class is label 1: equivalent, duplicate.
    "f1": lambda predicted, gold, _: statistics.f1(predicted, gold, positive=1),
    "matthews": lambda predicted, gold, task: statistics.matthews(
        predicted, gold, n_labels=len(task.labels)
    ),
    "pearson": lambda predicted, gold, _: statistics.pearson(predicted, gold),
    "spearman": lambda predicted, gold, _: statistics.spearman(predicted, gold),
    "cosine_pearson": lambda predicted, gold, _: statistics.pearson(predicted, gold),
    "cosine_spearman": lambda predicted, gold, _: statistics.spearman(predicted, gold),
    "micro_f1": lambda predicted, gold, _: statistics.micro_f1(predicted, gold),
    "macro_f1": lambda predicted, gold, _: statistics.macro_f1(predicted, gold),
}

LABEL_METRICS = tuple(_BUILDERS)
"""Those of answers that are labels or numbers."""

METRICS = (
    *LABEL_METRICS, "exact_match", "entity_f1", "ndcg_at_10", "mrr_at_10", "map", "recall_at_100",
)  # fmt: skip
"""Every metric name; on spans ``f1`` and ``exact_match`` are means over questions."""


def metric_of(name: str, predicted: NDArray[Any], gold: NDArray[Any], task: Task) -> Metric:
    """The metric ``name`` of these answers, as a function of row weights."""
    return _BUILDERS[name](predicted, gold, task)


def value(name: str, predicted: NDArray[Any], gold: NDArray[Any], task: Task) -> float:
    """The plain score."""
    return statistics.value_of(metric_of(name, predicted, gold, task))


def outcomes_of(
    task: Task, predicted: NDArray[Any], gold: NDArray[Any]
) -> dict[str, NDArray[np.float64] | Metric]:
    """Every metric of the task: for accuracy whether each row is right, else the metric itself."""
    return {
        name: _right(predicted, gold) if name == "accuracy"
        else metric_of(name, predicted, gold, task)
        for name in task.metrics
    }  # fmt: skip


def _right(predicted: NDArray[Any], gold: NDArray[Any]) -> NDArray[np.float64]:
    """Rows that are right; with several labels, in all of them."""
    same = np.asarray(predicted) == np.asarray(gold)
    return np.asarray(same if same.ndim == 1 else same.all(axis=1), dtype=np.float64)
