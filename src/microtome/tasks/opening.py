"""From a request (a task, a folder, a file) to data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from microtome.errors import DataError, RequestError
from microtome.tasks.catalogue import find_task
from microtome.tasks.dataset import Dataset, dataset_of
from microtome.tasks.hub import hub_source
from microtome.tasks.own import own_columns, own_task
from microtome.tasks.sources import (
    Source,
    embedded_source,
    file_source,
    fitting_columns,
    native_source,
)
from microtome.tasks.tables import format_of
from microtome.tasks.task import Columns, Kind, Task

DEFAULT_SPLIT = "dev"


@dataclass(frozen=True)
class Request:
    """What a user says about data. A column of None is the task's own, or ``text pair label``."""

    task: str | Task | None = None
    data: str | Path | None = None
    text_column: str | None = None
    pair_column: str | None = None
    label_column: str | None = None
    labels: Sequence[str] | None = None
    kind: Kind | None = None
    revision: str | None = None

    @property
    def path(self) -> Path | None:
        """Where the data is, if it was given."""
        return None if self.data is None else Path(self.data).expanduser()


def open_data(
    task: str | Task | None = None,
    data: str | Path | None = None,
    split: str | None = None,
    *,
    text_column: str | None = None,
    pair_column: str | None = None,
    label_column: str | None = None,
    labels: Sequence[str] | None = None,
    kind: Kind | None = None,
    revision: str | None = None,
) -> Dataset:
    """The rows of one split, or of one file; ``split`` is dev where none is named."""
    request = Request(task, data, text_column, pair_column, label_column, labels, kind, revision)
    return dataset_of(_source(request, split))


def open_training(
    request: Request, *, dev_data: str | Path | None = None
) -> tuple[Dataset, Dataset]:
    """Training rows and dev rows: two splits, two files, or one file split 80/20 by content."""
    path = request.path
    if path is None or path.is_dir():
        if dev_data is not None:
            raise RequestError("--dev-data goes with a --data FILE", "a task has its own dev split")
        return dataset_of(_source(request, "train")), dataset_of(_source(request, "dev"))
    rows = dataset_of(_source(request, None))
    if not rows.labelled:
        raise DataError(f"{path.name} has no labels to train on", "name them: --label-column")
    if dev_data is None:
        return rows.held_out()
    dev = dataset_of(_dev_source(request, rows.task, Path(dev_data).expanduser()))
    return replace(rows, split="train"), replace(dev, split="dev")


def _dev_source(request: Request, task: Task, path: Path) -> Source:
    if not path.is_file():
        raise DataError(f"no file {path} (--dev-data)")
    if request.task is None:
        # The training file decides what the labels are; a dev file may lack one of them.
        return _own_source(request, path, task)
    return _source(replace(request, data=path), None)


def _source(request: Request, split: str | None) -> Source:
    task = find_task(request.task) if isinstance(request.task, str) else request.task
    path = request.path
    _check_options(request, task, path)
    if path is None:
        return _named_source(task, split or DEFAULT_SPLIT, request)
    if not path.exists():
        raise DataError(f"no file or folder {path}")
    if path.is_dir():
        if task is None:
            raise RequestError(f"--data {path} is a folder", "say what it holds: --task")
        return native_source(task, path, split or DEFAULT_SPLIT)
    if split is not None:
        raise RequestError(
            f"--split {split} given with the file {path.name}", "a file is measured whole"
        )
    if task is None:
        return _own_source(request, path)
    return file_source(task, path, _asked_columns(task, path, request))


def _check_options(request: Request, task: Task | None, path: Path | None) -> None:
    """An option that would change nothing is refused."""
    columns = (request.text_column, request.pair_column, request.label_column)
    if any(columns) and (path is None or path.is_dir()):
        raise RequestError("columns given without a file", "they go with --data FILE")
    if (request.labels or request.kind) and task is not None:
        raise RequestError(f"labels given for {task.name}", f"its labels are {task.labels or '-'}")
    if request.revision and path is not None:
        raise RequestError("a revision given with --data", "it goes with the hub")


def _named_source(task: Task | None, split: str, request: Request) -> Source:
    if task is None:
        raise RequestError("no task and no data given", "name one: --task or --data")
    if task.embedded:
        return embedded_source(task, split)
    return hub_source(task, split, revision=request.revision)


def _asked_columns(task: Task, path: Path, request: Request) -> Columns | None:
    """The columns that the request names, the others being the task's; None if it names none."""
    text, pair, label = request.text_column, request.pair_column, request.label_column
    asked = [column for column in (text, pair, label) if column is not None]
    if not asked:
        return None
    if all(column.isdigit() for column in asked):
        return own_columns(path, text=text, pair=pair, label=label)
    return fitting_columns(task, path, format_of(path), text=text, pair=pair, label=label)


def _own_source(request: Request, path: Path, task: Task | None = None) -> Source:
    """A file of its own kind; with ``task`` given, another file of that kind."""
    columns = own_columns(
        path, text=request.text_column, pair=request.pair_column, label=request.label_column
    )
    notes: tuple[str, ...] = ()
    if task is None:
        task, notes = own_task(
            path, columns, format=format_of(path), labels=request.labels, kind=request.kind
        )
    return replace(file_source(task, path, columns), notes=notes)
