"""A data set of rows that a test makes (`from support.rows_in_memory import dataset_from`)."""

from __future__ import annotations

from collections.abc import Sequence

from microtome.tasks.dataset import Dataset, dataset_of
from microtome.tasks.reading.rows import Located
from microtome.tasks.reading.sources import RowSource
from microtome.tasks.task import Row, Task


def dataset_from(task: Task, rows: Sequence[Row]) -> Dataset:
    """The dev split of ``task``, as if it had been read from somewhere."""

    def read(_):
        return (Located(number, row) for number, row in enumerate(rows, start=1))

    return dataset_of(RowSource(task, "dev", read, labelled=True))
