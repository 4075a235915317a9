"""From a spec (a task, a folder, a file) to data sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from microtome.errors import DataError, RequestError
from microtome.tasks.catalogue import find_task
from microtome.tasks.data_spec import DataSpec
from microtome.tasks.dataset import Dataset, as_kind, dataset_of
from microtome.tasks.reading.beir import CORPUS, beir_source, beir_splits, is_beir
from microtome.tasks.reading.hub import hub_source
from microtome.tasks.reading.own import own_columns, own_task
from microtome.tasks.reading.reranking import has_passage_lists, passage_lists_source
from microtome.tasks.reading.sources import (
    RowSource,
    embedded_source,
    file_source,
    fitting_columns,
    native_source,
)
from microtome.tasks.reading.tables import column_names, format_as
from microtome.tasks.task import Columns, Kind, Task

DEFAULT_SPLIT = "dev"
TWO_WAYS = ("regression", "similarity")
"""Pairs with a number serve both kinds: see ``as_kind``."""


def open_data(spec: DataSpec) -> Dataset:
    """The measured rows of a spec: one split (dev unless named), one file, or a file's dev side.

    open_data(DataSpec("micro-sentiment", split="test", limit=100))
    """
    if spec.held_out or spec.dev_path is not None:
        rows = open_training(spec)[1]
    else:
        rows = _read(spec, _source(spec, spec.split)).of_length(spec.max_length)
    return rows.limit(spec.limit, seed=spec.seed)


def open_training(spec: DataSpec) -> tuple[Dataset, Dataset]:
    """Training rows and rows to measure, both whole: ``spec.limit`` isn't applied.

    Two splits of a task, two files, or one file split 80/20 by content.
    """
    train, dev = _both_sides(spec)
    if spec.split not in (None, dev.split):
        dev = _read(spec, _source(spec, spec.split))
    return train.of_length(spec.max_length), dev.of_length(spec.max_length)


def _read(spec: DataSpec, source: RowSource) -> Dataset:
    rows = dataset_of(replace(source, skip_unknown=spec.skip_unknown_labels))
    rows = replace(rows, prompt=spec.prompt)
    # Own data is read as the kind that is named; a task's rows may serve another kind, too.
    return rows if spec.task is None or spec.kind is None else as_kind(rows, spec.kind)


def _both_sides(spec: DataSpec) -> tuple[Dataset, Dataset]:
    if spec.task is None and spec.path is not None and is_beir(spec.path):
        return _beir_sides(spec, spec.path)
    if spec.path is None or spec.path.is_dir():
        if spec.dev_path is not None:
            raise RequestError("--dev-data goes with a --data FILE", "a task has its own dev split")
        return _read(spec, _source(spec, "train")), _read(spec, _source(spec, "dev"))
    if spec.split is not None:
        raise RequestError(f"--split {spec.split} doesn't go with a file", "a file has no splits")
    rows = _read(spec, _source(spec, None))
    if not rows.labelled and rows.task.kind != "text":  # a masked LM needs none
        raise DataError(f"{spec.path.name} has no labels to train on", "name them: --label-column")
    if spec.dev_path is None:
        return rows.held_out()
    dev = _read(spec, _dev_source(spec, rows.task, spec.dev_path))
    return replace(rows, split="train"), replace(dev, split="dev")


def _beir_sides(spec: DataSpec, folder: Path) -> tuple[Dataset, Dataset]:
    """Two splits of a BEIR folder; one that has no train split is divided by its queries."""
    splits = beir_splits(folder)
    if "train" not in splits:
        return _read(spec, _source(spec, spec.split)).held_out()
    dev = spec.split or next((name for name in splits if name in ("dev", "test")), "dev")
    return _read(spec, _source(spec, "train")), _read(spec, _source(spec, dev))


def _dev_source(spec: DataSpec, task: Task, path: Path) -> RowSource:
    if not path.is_file():
        raise DataError(f"no file {path} (--dev-data)")
    if spec.task is None:
        # The training file decides what the labels are; a dev file may lack one of them.
        return _own_source(spec, path, task)
    return _source(replace(spec, path=path), None)


def _source(spec: DataSpec, split: str | None) -> RowSource:
    task = find_task(spec.task) if isinstance(spec.task, str) else spec.task
    path = spec.path
    _check_options(spec, task, path)
    if path is None:
        return _named_source(task, split or DEFAULT_SPLIT, spec)
    if not path.exists():
        raise DataError(f"no file or folder {path}")
    if path.is_dir():
        if task is None and is_beir(path):
            return _beir_source(spec, path, split)
        if task is None:
            raise RequestError(f"--data {path} is a folder", "say what it holds: --task")
        return native_source(task, path, split or DEFAULT_SPLIT)
    if split is not None:
        raise RequestError(
            f"--split {split} doesn't go with the file {path.name}", "a file is measured whole"
        )
    if task is None:
        return _own_source(spec, path)
    return file_source(task, path, _asked_columns(task, path, spec))


def _beir_source(spec: DataSpec, folder: Path, split: str | None) -> RowSource:
    kind: Kind = "retrieval" if spec.candidates is None else "reranking"
    if spec.kind == "reranking" != kind:
        raise RequestError(
            f"{folder} is reranked with the candidates of a first stage",
            "name its run in TREC's format: --candidates FILE",
        )
    if spec.kind not in (None, kind):
        raise RequestError(f"expected --kind {kind} for a folder with {CORPUS}, got {spec.kind}")
    return beir_source(folder, split, spec.candidates)


def _check_options(spec: DataSpec, task: Task | None, path: Path | None) -> None:
    """An option that would change nothing is refused."""
    if any((*spec.columns, spec.label_separator)) and (path is None or path.is_dir()):
        raise RequestError("columns expect a file", "name it: --data FILE")
    serves = task is not None and task.kind in TWO_WAYS and spec.kind in (None, *TWO_WAYS)
    if task is not None and (spec.labels or (spec.kind and not serves)):
        raise RequestError(
            f"--labels and --kind don't go with {task.name}", "they are for own data"
        )
    if spec.candidates is not None and (path is None or not is_beir(path)):
        raise RequestError(f"--candidates goes with a --data FOLDER that has {CORPUS}")
    if spec.revision and path is not None:
        raise RequestError("--revision doesn't go with --data", "it names a version on the hub")


def _named_source(task: Task | None, split: str, spec: DataSpec) -> RowSource:
    if task is None:
        raise RequestError("expected a task or data, got neither", "name one: --task or --data")
    if task.embedded:
        return embedded_source(task, split)
    if task.folder is not None:
        return native_source(task, task.folder, split)
    return hub_source(task, split, revision=spec.revision)


def _asked_columns(task: Task, path: Path, spec: DataSpec) -> Columns | None:
    """The columns that the spec names, completed by the task's; None if it names none."""
    text, pair, label = spec.text_column, spec.pair_column, spec.label_column
    asked = [column for column in (text, pair, label) if column is not None]
    if not asked:
        return None
    if all(column.isdigit() for column in asked):
        return own_columns(path, text=text, pair=pair, label=label, kind=task.kind)
    return fitting_columns(
        task, path, format_as(path, task.kind), text=text, pair=pair, label=label
    )


def _own_source(spec: DataSpec, path: Path, task: Task | None = None) -> RowSource:
    """A file of own data, whose task is inferred unless it is known."""
    format = format_as(path, spec.kind)
    may_list = format == "jsonl" and not any(spec.columns) and spec.kind in (None, "reranking")
    if may_list and has_passage_lists(column_names(path, format)):
        return passage_lists_source(path)
    columns = own_columns(
        path, text=spec.text_column, pair=spec.pair_column, label=spec.label_column,
        kind=spec.kind, separator=spec.label_separator,
    )  # fmt: skip
    notes: tuple[str, ...] = ()
    if task is None:
        task, notes = own_task(
            path, columns, format=format, labels=spec.labels, kind=spec.kind,
            skip_empty=spec.skip_unknown_labels,
        )  # fmt: skip
    if task.kind == "text":
        columns = replace(columns, label=None, labels=())
    return replace(file_source(task, path, columns), notes=notes)
