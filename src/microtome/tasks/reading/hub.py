"""A task's rows from the hub, through ``datasets``: columns and counts are checked on arrival."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from microtome.errors import DataError, MissingExtra
from microtome.tasks.catalogue import find_split
from microtome.tasks.reading.rows import Located, Oddities, column_order, rows_of
from microtome.tasks.reading.sources import RowSource
from microtome.tasks.reading.tables import FieldRecord, missing_column
from microtome.tasks.task import Hub, Split, Task


def hub_source(task: Task, split_name: str, *, revision: str | None = None) -> RowSource:
    """A split of ``task`` as the hub has it (``revision``: a commit, a tag or a branch)."""
    split = find_split(task, split_name)
    if task.hub is None or split.hub_split is None:
        raise DataError(f"{task.name} {split.name} isn't on the hub", "give its files with --data")
    columns = task.hub.columns if split.labelled else replace(task.hub.columns, label=None)
    table = _load(task, task.hub, split, revision)
    place = Path(task.hub.id)
    for column in columns.named:
        if column not in table.column_names:
            raise missing_column(place, column, table.column_names)
    _check_count(task, split, len(table), revision)
    with_id = columns.id in table.column_names
    names = column_order(columns, with_id=with_id)
    title = "title" if task.cluster_by == "given" and "title" in table.column_names else None

    def read(oddities: Oddities) -> Iterator[Located]:
        records = _records(table, names)
        rows = rows_of(task, place, records, columns, oddities, with_id=with_id, unit="row")
        return rows if title is None else _with_cluster(rows, table, title)

    return RowSource(task, split.name, read, split.labelled, published=split, unit="row")


def _load(task: Task, hub: Hub, split: Split, revision: str | None) -> Any:  # noqa: ANN401
    # ``datasets`` has no types; what matters of its table is checked above.
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra.named("datasets", "hub", otherwise=_files_wanted(split)) from error
    from huggingface_hub.utils import logging

    verbosity = logging.get_verbosity()
    # Its retries would fill the screen; the error below says it in one line.
    logging.set_verbosity(40)  # ERROR
    try:
        return datasets.load_dataset(hub.id, hub.config, split=split.hub_split, revision=revision)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"{task.name} {split.name} can't be loaded from the hub ({hub.id}): {reason}",
            _files_wanted(split),
        ) from error
    finally:
        logging.set_verbosity(verbosity)


def _files_wanted(split: Split) -> str:
    names = " or ".join(file.name for file in split.files)
    return f"give a folder with {names}: --data DIR"


def _check_count(task: Task, split: Split, n_rows: int, revision: str | None) -> None:
    fitting = (split.n_rows, split.n_rows + split.n_unlabelled)
    if n_rows not in fitting:
        raise DataError(
            f"expected {split.n_rows:,} rows of {task.name} {split.name}, the hub has {n_rows:,}"
            f" (revision {revision or 'newest'})",
            "name another --revision, or give the files with --data",
        )


def _records(table: Any, names: tuple[str, ...]) -> Iterator[FieldRecord]:  # noqa: ANN401
    for number, row in enumerate(table.select_columns(list(names)), start=1):
        yield FieldRecord(number, tuple(row[name] for name in names))


def _with_cluster(rows: Iterator[Located], table: Any, column: str) -> Iterator[Located]:  # noqa: ANN401
    for (number, row), record in zip(rows, table.select_columns([column]), strict=True):
        yield Located(number, row._replace(cluster=str(record[column])))
