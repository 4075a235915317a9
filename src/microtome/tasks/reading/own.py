"""Own data: a file's kind and labels are inferred, noted, and can be overridden."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from microtome.errors import DataError, RequestError
from microtome.tasks.reading.conll import TAGS, WORDS
from microtome.tasks.reading.lines import at_line
from microtome.tasks.reading.rows import (
    UnreadableError,
    label_name,
    number_of,
    shown,
    split_labels,
)
from microtome.tasks.reading.sources import PLAIN
from microtome.tasks.reading.tables import (
    TEXT_COLUMN,
    Value,
    column_names,
    format_as,
    missing_column,
    read_records,
)
from microtome.tasks.tags import is_tag, tag_names
from microtome.tasks.task import ClusterBy, Columns, Format, Kind, Task, task_of_data

MANY = 20
"""Whole-number labels with more different values than this are a scale, not classes."""

_WHOLE = re.compile(r"[+-]?\d+")
_WORD_COLUMNS, _TAG_COLUMNS = ("tokens", "words"), ("tags", "ner_tags", "labels")


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
    if not columns.labelled or kind == "text":
        return task_of_data(path.name, "text"), (f"{path.name}: texts without labels",)
    kind = kind or _shown_kind(path, format, columns)
    if kind in ("similarity", "reranking") and columns.pair is None:
        raise DataError(
            f"{path.name}: {kind} needs pairs of texts", "name the second: --pair-column"
        )
    if kind in ("spans", "retrieval"):
        needed = "--task squad2" if kind == "spans" else "--data FOLDER with corpus.jsonl"
        raise RequestError(f"--kind {kind} doesn't go with {path.name}", f"it is read by {needed}")
    if labels and kind not in (None, "classification", "multilabel", "tokens"):
        raise RequestError(f"--labels doesn't go with {kind}", "labels belong to classification")
    names = tuple(labels or ())
    if kind in ("similarity", "reranking"):
        cluster_by: ClusterBy | None = "text" if kind == "reranking" else None
        return task_of_data(path.name, kind, cluster_by=cluster_by), ()
    if kind in ("multilabel", "tokens"):
        names = names or columns.labels or _names_in(path, format, columns, kind)
        if not names:
            raise DataError(f"{path.name}: expected labels in column {columns.label!r}, got none")
        if kind == "tokens" and not all(map(is_tag, names)):
            raise DataError(f"expected labels like O, B-PER and I-PER, got {', '.join(names)}")
        return task_of_data(path.name, kind, names), (
            f"{path.name}: {kind}, labels {', '.join(names)}",
        )
    if labels:
        return _classification(path, names), (f"labels as given: {', '.join(labels)}",)
    inferred, names, seen = _look_at(path, format, columns, kind, skip_empty=skip_empty)
    if inferred == "regression":
        note = f"{path.name}: regression, inferred from {seen}"
        return task_of_data(path.name, "regression"), (note,)
    note = f"{path.name}: classification, labels inferred in this order: {', '.join(names)}"
    return _classification(path, names), (note,)


def _shown_kind(path: Path, format: Format, columns: Columns) -> Kind | None:
    """The kind that the columns and the first row show; None: a class or a number."""
    if columns.labels or columns.separator is not None:
        return "multilabel"
    if format == "conll":
        return "tokens"
    if format not in ("jsonl", "parquet") or columns.label is None:
        return None
    first = next(read_records(path, format, (columns.text, columns.label)), None)
    if first is None or not isinstance(first.values[1], list):
        return None
    return "tokens" if isinstance(first.values[0], list) else "multilabel"


def _names_in(path: Path, format: Format, columns: Columns, kind: Kind) -> tuple[str, ...]:
    """The labels that lists or tags name, in order."""
    assert columns.label is not None
    names: set[str] = set()
    records = read_records(path, format, (columns.text, columns.label), header=columns.header)
    for number, (_, value) in records:
        try:
            found = split_labels(value, columns.separator)
            names.update(map(label_name, found) if kind == "multilabel" else map(str, found))
            if kind == "tokens" and (odd := [tag for tag in found if not is_tag(str(tag))]):
                problem = f"expected tags like O, B-PER and I-PER, got {odd[0]!r}"
                raise UnreadableError(problem)
        except UnreadableError as reason:
            hint = "name the tags in the order of their numbers: --labels"
            raise at_line(path, number, str(reason), hint if kind == "tokens" else "") from reason
    if kind == "tokens":
        return tag_names(names)
    return tuple(sorted(names, key=float) if all(map(_is_whole, names)) else sorted(names))


def own_columns(
    path: Path,
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    kind: Kind | None = None,
    separator: str | None = None,
) -> Columns:
    """The columns of own data: those that are asked for, else ``text``, ``pair`` and ``label``.

    Columns named by numbers (from 1) mean that a tsv or csv file has no header line. ``a,b,c`` are
    three columns of 0 and 1. Lists of words are in ``tokens`` or ``words``, their tags in ``tags``
    or ``ner_tags``.
    """
    format = format_as(path, kind)
    if format == "squad":
        raise DataError(f"{path.name} needs a task", "add --task squad2")
    several = tuple((label or "").split(","))
    numbered = all(name is None or name.isdigit() for name in (text, pair, *several))
    there = column_names(path, format, checked=not numbered)
    if format == "txt":
        return Columns(TEXT_COLUMN)
    if format == "conll":
        return Columns(text or WORDS, label=label or TAGS)
    several = several if len(several) > 1 and label not in there else ()
    names = (text, pair, *(several or (label,)))
    header = _numbered(there, names) if format in ("tsv", "csv") else None
    there = header or there

    def usual(*names: str) -> str | None:
        return next((name for name in names if name in there), None) if header is None else None

    text = text or usual(PLAIN.text, *_WORD_COLUMNS) or PLAIN.text
    roles = ("text", "pair", *("label" for _ in names[2:]))
    for role, name in zip(roles, (text, *names[1:]), strict=True):
        if name is not None and name not in there:
            raise missing_column(path, name, there, option=f"--{role}-column")
    tags = _TAG_COLUMNS if text in _WORD_COLUMNS else ()
    return Columns(
        text=text,
        pair=pair or usual("pair"),
        label=None if several else label or usual("label", *tags),
        id="id",
        header=header,
        labels=several,
        separator=separator,
    )


def _numbered(there: tuple[str, ...], asked: Sequence[str | None]) -> tuple[str, ...] | None:
    names = [name for name in asked if name is not None]
    if names and all(name.isdigit() for name in names) and not set(names) <= set(there):
        return tuple(str(place) for place in range(1, len(there) + 1))
    return None


def _classification(path: Path, labels: tuple[str, ...]) -> Task:
    if len(labels) != len(set(labels)) or len(labels) < 2:
        raise DataError(
            f"{path.name}: expected at least 2 different labels, got {len(set(labels))}",
            f"they are {', '.join(labels)}",
        )
    metrics = ("accuracy", "f1", "matthews") if len(labels) == 2 else ("accuracy", "matthews")
    return task_of_data(path.name, "classification", labels, metrics=metrics)


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
        if value is None or value == "" or value != value:  # pandas writes NaN for none
            if skip_empty:
                continue
            hint = "add it, or leave such rows out: --skip-unknown-labels"
            raise at_line(path, number, f"no label in column {columns.label!r}", hint)
        if not isinstance(value, (str, int, float)):
            raise at_line(path, number, f"expected a label, got {shown(value)}")
        yield value


def _is_whole(value: Value) -> bool:
    if isinstance(value, str):
        return _WHOLE.fullmatch(value.strip()) is not None
    return isinstance(value, int) and not isinstance(value, bool)
