"""Pairs of texts out of a file: ``clean`` and ``corrupted``, and for a masked LM two words."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from microtome.errors import DataError
from microtome.tasks.reading.lines import at_line
from microtome.tasks.reading.rows import UnreadableError, checked_text
from microtome.tasks.reading.tables import column_names, format_of, missing_column, read_records

NEEDED = ("clean", "corrupted")
OPTIONAL = ("clean_pair", "corrupted_pair", "answer", "other")
FORMATS = ("csv", "tsv", "jsonl", "parquet")
Input = str | tuple[str, str]
"""What is encoded as one: a text, or the two texts that a model reads together."""


@dataclass(frozen=True)
class TextPair:
    """A clean and a corrupted text; for a masked LM, two words that are compared at [MASK].

    ``row`` is the same for pairs that aren't independent; ``line`` is that of a file, else 0.
    """

    clean: Input
    corrupted: Input
    row: int
    answer: str | None = None
    other: str | None = None
    line: int = field(default=0, compare=False)


def read_pairs(path: Path) -> list[TextPair]:
    """The pairs of a csv, tsv, JSON lines or parquet file, as its columns name them.

    ``clean`` and ``corrupted`` are needed. ``clean_pair`` and ``corrupted_pair`` are second texts,
    for models that read two (the second column is the first unless given); ``answer`` and ``other``
    are words. Pairs of one clean text have one ``row``.
    """
    format = format_of(path)
    if format not in FORMATS:
        raise DataError(f"expected pairs in a .csv .tsv .jsonl or .parquet file, got {path.name}")
    there = column_names(path, format)
    for name in NEEDED:
        if name not in there:
            raise missing_column(path, name, there)
    columns = [*NEEDED, *(name for name in OPTIONAL if name in there)]
    rows: dict[Input, int] = {}
    pairs = []
    for number, values in read_records(path, format, columns):
        try:
            fields = {
                name: checked_text(name, value)
                for name, value in zip(columns, values, strict=True)
                if value or name in NEEDED
            }
        except UnreadableError as reason:
            raise at_line(path, number, str(reason)) from reason
        clean, corrupted = _inputs(fields)
        row = rows.setdefault(clean, len(rows))
        words = fields.get("answer"), fields.get("other")
        pairs.append(TextPair(clean, corrupted, row, *words, line=number))
    if not pairs:
        raise DataError(f"{path.name} has no rows")
    return pairs


def _inputs(fields: dict[str, str]) -> tuple[Input, Input]:
    """The clean and the corrupted text, each with its second text if there is one."""
    second = fields.get("clean_pair")
    if second is None:
        return fields["clean"], fields["corrupted"]
    return (fields["clean"], second), (fields["corrupted"], fields.get("corrupted_pair", second))
