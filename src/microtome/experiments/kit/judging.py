"""By which of a task's metrics results are shown and judged, and on which split; no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import Subject
from microtome.tasks.reading.opening import open_data
from microtome.views import TidyRow, TidyRows

METRIC = Option("metric", None, "of the task's, the one that is shown; its first unless given")
TEST_SPLIT = Option("test_split", False, "also score what dev rows pick on the test split", "flag")
TEST = "test"  # a split


def chosen_metric(subject: Subject, settings: Mapping[str, Any]) -> str | None:
    """``--metric``, or the task's primary one; None where rows have no labels to score."""
    task = subject.dataset.task
    metric: str | None = settings["metric"]
    if metric is not None and metric not in task.metrics:
        raise RequestError(
            f"--metric must be one of {task.name}'s, {' or '.join(task.metrics) or 'none'},"
            f" got {metric!r}"
        )
    return metric or task.primary


def on_test_split(subject: Subject) -> Subject:
    """The same model on the task's test split; one that isn't there or has no labels is refused."""
    task, data = subject.dataset.task, subject.data
    if data.is_file:
        raise RequestError("--test-split needs a task with a test split", "a file has none")
    if subject.dataset.split == TEST:
        raise RequestError("--test-split picks on other rows than test's", "leave --split test out")
    if TEST not in (split.name for split in task.splits):
        raise RequestError(f"--test-split doesn't go with {task.name}: it has no test split")
    rows = replace(data, split=TEST)
    opened = open_data(rows)
    if not opened.labelled:
        raise RequestError(
            f"--test-split doesn't go with {task.name}: its test rows have no labels here"
        )
    return replace(subject, data=rows, opened=opened)


def shown_rows(rows: TidyRows) -> list[TidyRow]:
    """The rows of the metric that is shown: the one that their column ``primary`` names."""
    return [row for row in rows if row["metric"] == row.get("primary", row["metric"])]
