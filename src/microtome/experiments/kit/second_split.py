"""Picked on dev, scored on test: where a task has a second labelled split."""

from __future__ import annotations

from dataclasses import replace

from microtome.errors import RequestError
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import Subject
from microtome.tasks.reading.opening import open_data

TEST_SPLIT = Option("test_split", False, "also score what dev rows pick on the test split", "flag")
TEST = "test"


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
