"""Reranking data as JSON lines: each has a query, its positive and its negative passages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from microtome.tasks.reading.lines import at_line
from microtome.tasks.reading.rows import Located, Oddities, UnreadableError, checked_text, shown
from microtome.tasks.reading.sources import FILE_SPLIT, RowSource
from microtome.tasks.reading.tables import read_objects
from microtome.tasks.task import Row, task_of_data

QUERY = "query"
PASSAGES = ((1, ("positive", "positives", "pos")), (0, ("negative", "negatives", "neg")))
"""The names that relevant and irrelevant passages go by."""


def has_passage_lists(columns: Sequence[str]) -> bool:
    """Whether the columns are a query and its positive passages."""
    return QUERY in columns and any(name in columns for name in PASSAGES[0][1])


def passage_lists_source(path: Path) -> RowSource:
    """A row for every query and passage; the line is the cluster."""
    task = task_of_data(path.name, "reranking", cluster_by="given")

    def read(_: Oddities) -> Iterator[Located]:
        for number, fields in read_objects(path):
            try:
                yield from _rows(number, fields)
            except UnreadableError as reason:
                raise at_line(path, number, str(reason)) from reason

    return RowSource(task, FILE_SPLIT, read, labelled=True, path=path)


def _rows(number: int, fields: Mapping[str, object]) -> Iterator[Located]:
    query = checked_text(QUERY, fields.get(QUERY))
    pairs = [
        (passage, grade)
        for grade, names in PASSAGES
        for name in names
        for passage in _passages(name, fields.get(name, []))
    ]
    if not pairs:
        raise UnreadableError("expected positive and negative passages, got none")
    for passage, grade in pairs:
        yield Located(number, Row(query, passage, grade, cluster=f"line {number}"))


def _passages(name: str, value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(passage, str) for passage in values):
        raise UnreadableError(f"expected a list of texts in {name!r}, got {shown(value)}")
    return [checked_text(name, passage) for passage in values]
