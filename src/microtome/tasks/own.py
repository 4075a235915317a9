"""Own data: what a file's labels are is inferred, said, and can be overridden."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from microtome.errors import DataError, RequestError
from microtome.tasks.lines import at_line
from microtome.tasks.rows import label_name, number_of
from microtome.tasks.sources import PLAIN
from microtome.tasks.tables import (
    TEXT_COLUMN,
    Value,
    column_names,
    format_of,
    missing_column,
    read_records,
)
from microtome.tasks.task import Columns, Format, Kind, Task

MANY = 20
"""Whole-number labels with more different values than this are a scale, not classes."""

_WHOLE = re.compile(r"[+-]?\d+")


def own_task(
    path: Path,
    columns: Columns,
    *,
    format: Format,
    labels: Sequence[str] | None = None,
    kind: Kind | None = None,
) -> tuple[Task, tuple[str, ...]]:
    """The task that a file is, and what was inferred, in words."""
    if columns.label is None:
        return _task(path, "text", (), ()), (f"{path.name}: texts without labels",)
    if labels and kind not in (None, "classification"):
        raise RequestError(f"labels given for a {kind} task", "labels belong to classification")
    if labels:
        return _classification(path, tuple(labels)), (f"labels as given: {', '.join(labels)}",)
    inferred, names, seen = _look_at(path, format, columns, kind)
    if inferred == "regression":
        note = f"{path.name}: regression, inferred from {seen}"
        return _task(path, "regression", (), ("pearson", "spearman")), (note,)
    note = f"{path.name}: classification, labels inferred in this order: {', '.join(names)}"
    return _classification(path, names), (note,)


def own_columns(
    path: Path, *, text: str | None = None, pair: str | None = None, label: str | None = None
) -> Columns:
    """The columns of own data: those that are asked for, else ``text``, ``pair`` and ``label``.

    Columns given as numbers (from 1) mean that a tsv or csv file has no header line.
    """
    format = format_of(path)
    if format == "squad":
        raise DataError(f"{path.name} needs a task", "add --task squad2")
    there = column_names(path, format)
    if format == "txt":
        return Columns(TEXT_COLUMN)
    header = _numbered(there, (text, pair, label)) if format in ("tsv", "csv") else None
    there = header or there
    for asked in (text or PLAIN.text, pair, label):
        if asked is not None and asked not in there:
            raise missing_column(path, asked, there)
    return Columns(
        text=text or PLAIN.text,
        pair=pair or ("pair" if "pair" in there and header is None else None),
        label=label or ("label" if "label" in there and header is None else None),
        id="id",
        header=header,
    )


def _numbered(there: tuple[str, ...], asked: Sequence[str | None]) -> tuple[str, ...] | None:
    given = [name for name in asked if name is not None]
    if given and all(name.isdigit() for name in given) and not set(given) <= set(there):
        return tuple(str(place) for place in range(1, len(there) + 1))
    return None


def _task(path: Path, kind: Kind, labels: tuple[str, ...], metrics: tuple[str, ...]) -> Task:
    return Task(
        name=path.name, kind=kind, labels=labels, metrics=metrics, summary=f"own data, {path.name}"
    )


def _classification(path: Path, labels: tuple[str, ...]) -> Task:
    if len(labels) != len(set(labels)) or len(labels) < 2:
        raise DataError(
            f"{path.name}: {len(set(labels))} different labels, at least 2 wanted",
            f"found or given: {', '.join(labels)}",
        )
    metrics = ("accuracy", "f1", "matthews") if len(labels) == 2 else ("accuracy", "matthews")
    return _task(path, "classification", labels, metrics)


def _look_at(
    path: Path, format: Format, columns: Columns, kind: Kind | None
) -> tuple[Kind, tuple[str, ...], str]:
    """Kind, label names in order, and what was seen, from one pass over the label column."""
    counts: Counter[str] = Counter()
    whole = numbers = True
    n_rows = 0
    for value in _labels(path, format, columns):
        n_rows += 1
        whole = whole and _is_whole(value)
        numbers = numbers and number_of(value) is not None
        if len(counts) <= 1000:
            counts[label_name(value)] += 1
    n_different = len(counts)
    seen = f"{n_different if n_different <= 1000 else 'over 1,000'} different numbers"
    if kind == "regression" or (kind is None and numbers and (not whole or n_different > MANY)):
        return "regression", (), seen
    if n_different > MANY and n_different > n_rows / 2:
        raise DataError(
            f"{path.name}: column {columns.label!r} holds {n_different} different values in"
            f" {n_rows} rows, labels were wanted"
        )
    order = sorted(counts, key=float) if whole else sorted(counts)
    return "classification", tuple(order), seen


def _labels(path: Path, format: Format, columns: Columns) -> Iterator[Value]:
    assert columns.label is not None
    records = read_records(path, format, (columns.label,), header=columns.header)
    for number, (value,) in records:
        if value is None or value == "":
            raise at_line(path, number, f"no label in column {columns.label!r}")
        yield value


def _is_whole(value: Value) -> bool:
    if isinstance(value, str):
        return _WHOLE.fullmatch(value.strip()) is not None
    return isinstance(value, int) and not isinstance(value, bool)
