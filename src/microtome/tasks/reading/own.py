"""Own data: a file's kind and labels are inferred, noted, and can be overridden."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from microtome.errors import DataError, RequestError
from microtome.tasks.reading.lines import at_line
from microtome.tasks.reading.rows import label_name, number_of
from microtome.tasks.reading.sources import PLAIN
from microtome.tasks.reading.tables import (
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
    skip_empty: bool = False,
) -> tuple[Task, tuple[str, ...]]:
    """The task that a file is, and what was inferred, in words.

    Labels that differ in case only are one, named as most rows spell it. Rows without a label are
    refused, unless ``skip_empty``.
    """
    if columns.label is None:
        # The one score of plain text is a masked LM's.
        return _task(path, "text", (), ("masked_accuracy",)), (
            f"{path.name}: texts without labels",
        )
    if labels and kind not in (None, "classification"):
        raise RequestError(f"--labels doesn't go with {kind}", "labels belong to classification")
    if labels:
        return _classification(path, tuple(labels)), (f"labels as given: {', '.join(labels)}",)
    inferred, names, seen = _look_at(path, format, columns, kind, skip_empty=skip_empty)
    if inferred == "regression":
        note = f"{path.name}: regression, inferred from {seen}"
        return _task(path, "regression", (), ("pearson", "spearman")), (note,)
    note = f"{path.name}: classification, labels inferred in this order: {', '.join(names)}"
    return _classification(path, names), (note,)


def own_columns(
    path: Path, *, text: str | None = None, pair: str | None = None, label: str | None = None
) -> Columns:
    """The columns of own data: those that are asked for, else ``text``, ``pair`` and ``label``.

    Columns named by numbers (from 1) mean that a tsv or csv file has no header line.
    """
    format = format_of(path)
    if format == "squad":
        raise DataError(f"{path.name} needs a task", "add --task squad2")
    there = column_names(path, format)
    if format == "txt":
        return Columns(TEXT_COLUMN)
    header = _numbered(there, (text, pair, label)) if format in ("tsv", "csv") else None
    there = header or there
    roles = {"text": text or PLAIN.text, "pair": pair, "label": label}
    for role, asked in roles.items():
        if asked is not None and asked not in there:
            raise missing_column(path, asked, there, option=f"--{role}-column")
    return Columns(
        text=text or PLAIN.text,
        pair=pair or ("pair" if "pair" in there and header is None else None),
        label=label or ("label" if "label" in there and header is None else None),
        id="id",
        header=header,
    )


def _numbered(there: tuple[str, ...], asked: Sequence[str | None]) -> tuple[str, ...] | None:
    names = [name for name in asked if name is not None]
    if names and all(name.isdigit() for name in names) and not set(names) <= set(there):
        return tuple(str(place) for place in range(1, len(there) + 1))
    return None


def _task(path: Path, kind: Kind, labels: tuple[str, ...], metrics: tuple[str, ...]) -> Task:
    return Task(
        name=path.name, kind=kind, labels=labels, metrics=metrics, summary=f"own data, {path.name}"
    )


def _classification(path: Path, labels: tuple[str, ...]) -> Task:
    if len(labels) != len(set(labels)) or len(labels) < 2:
        raise DataError(
            f"{path.name}: expected at least 2 different labels, got {len(set(labels))}",
            f"they are {', '.join(labels)}",
        )
    metrics = ("accuracy", "f1", "matthews") if len(labels) == 2 else ("accuracy", "matthews")
    return _task(path, "classification", labels, metrics)


def _look_at(
    path: Path, format: Format, columns: Columns, kind: Kind | None, *, skip_empty: bool
) -> tuple[Kind, tuple[str, ...], str]:
    """Kind, label names in order, and what was seen, from one pass over the label column."""
    counts: Counter[str] = Counter()
    whole = numbers = True
    n_rows = 0
    for value in _labels(path, format, columns, skip_empty=skip_empty):
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
            f"{path.name}: expected labels in column {columns.label!r}, got {n_different} different"
            f" values in {n_rows} rows"
        )
    names = _spellings(counts)
    order = sorted(names, key=float) if whole else sorted(names)
    return "classification", tuple(order), seen


def _spellings(counts: Counter[str]) -> list[str]:
    """Of labels that differ in case only, the commonest spelling."""
    commonest: dict[str, str] = {}
    for label in sorted(counts, key=lambda label: (-counts[label], label)):
        commonest.setdefault(label.casefold(), label)
    return list(commonest.values())


def _labels(path: Path, format: Format, columns: Columns, *, skip_empty: bool) -> Iterator[Value]:
    assert columns.label is not None
    records = read_records(path, format, (columns.label,), header=columns.header)
    for number, (value,) in records:
        if value is None or value == "":
            if skip_empty:
                continue
            hint = "add it, or leave such rows out: --skip-unknown-labels"
            raise at_line(path, number, f"no label in column {columns.label!r}", hint)
        yield value


def _is_whole(value: Value) -> bool:
    if isinstance(value, str):
        return _WHOLE.fullmatch(value.strip()) is not None
    return isinstance(value, int) and not isinstance(value, bool)
