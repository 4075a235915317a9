"""A task's rows from the hub, through ``datasets``: columns and counts are checked on arrival."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from microtome.errors import DataError
from microtome.tasks.catalogue import find_split
from microtome.tasks.rows import Located, rows_of, wanted
from microtome.tasks.sources import Source
from microtome.tasks.tables import Record, missing_column
from microtome.tasks.task import Hub, Split, Task


def hub_source(task: Task, split_name: str, *, revision: str | None = None) -> Source:
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
    names = wanted(columns, with_id=with_id)
    title = "title" if task.cluster_by == "given" and "title" in table.column_names else None

    def read(_: list[int]) -> Iterator[Located]:
        records = _records(table, names)
        rows = rows_of(task, place, records, columns, with_id=with_id, unit="row")
        return rows if title is None else _with_cluster(rows, table, title)

    return Source(task, split.name, read, split.labelled, published=split, unit="row")


def _load(task: Task, hub: Hub, split: Split, revision: str | None) -> Any:  # noqa: ANN401
    # ``datasets`` has no types; what matters of its table is checked above.
    import datasets
    from huggingface_hub.utils import logging

    verbosity = logging.get_verbosity()
    # Its retries would fill the screen; the error below says it in one line.
    logging.set_verbosity(40)  # ERROR
    try:
        return datasets.load_dataset(hub.id, hub.config, split=split.hub_split, revision=revision)
    except (OSError, ValueError) as error:
        names = " or ".join(file.name for file in split.files)
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"{task.name} {split.name} can't be had from the hub ({hub.id}): {reason}",
            f"give a folder with {names}: --data DIR",
        ) from error
    finally:
        logging.set_verbosity(verbosity)


def _check_count(task: Task, split: Split, n_rows: int, revision: str | None) -> None:
    fitting = (split.n_rows, split.n_rows + split.n_unlabelled)
    if n_rows not in fitting:
        raise DataError(
            f"the hub gave {n_rows:,} rows of {task.name} {split.name}"
            f" (revision {revision or 'newest'}), {split.n_rows:,} are published",
            "name another --revision, or give the files with --data",
        )


def _records(table: Any, names: tuple[str, ...]) -> Iterator[Record]:  # noqa: ANN401
    for number, row in enumerate(table.select_columns(list(names)), start=1):
        yield Record(number, tuple(row[name] for name in names))


def _with_cluster(rows: Iterator[Located], table: Any, column: str) -> Iterator[Located]:  # noqa: ANN401
    for (number, row), found in zip(rows, table.select_columns([column]), strict=True):
        yield Located(number, row._replace(cluster=str(found[column])))
