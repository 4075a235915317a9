"""Which of a task's metrics is shown and judged; rows of the others are kept next to its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import Subject
from microtome.views import TidyRow, TidyRows

METRIC = Option("metric", None, "of the task's, the one that is shown; its first unless given")


def chosen_metric(subject: Subject, settings: Mapping[str, Any]) -> str | None:
    """``--metric``, or the task's primary one; None where rows have no labels to score."""
    task = subject.dataset.task
    metric: str | None = settings[METRIC.name]
    if metric is not None and metric not in task.metrics:
        raise RequestError(
            f"--metric must be one of {task.name}'s, {' or '.join(task.metrics) or 'none'},"
            f" got {metric!r}"
        )
    return metric or task.primary


def shown_rows(rows: TidyRows) -> list[TidyRow]:
    """The rows of the metric that is shown: the one that their column ``primary`` names."""
    return [row for row in rows if row["metric"] == row.get("primary", row["metric"])]
