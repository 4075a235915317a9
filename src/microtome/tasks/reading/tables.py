"""Rows of fields out of tsv, csv, JSON lines, parquet and text files, one at a time.

A record is the number of its line (parquet: its row) and the values of the columns asked for. A
row that can't be read right is refused with its number; nothing is guessed, merged or lost.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, cast

from microtome.errors import DataError
from microtome.tasks.reading.conll import TAGS, WORDS, read_conll
from microtome.tasks.reading.csv_fields import csv_rows
from microtome.tasks.reading.lines import (
    Line,
    at_line,
    check_readable,
    read_lines,
    without_blank_end,
)
from microtome.tasks.task import Format, Kind

Value = str | int | float | bool | None | Sequence[object] | dict[str, object]
Fields = tuple[int, list[str]]

SUFFIXES: dict[str, Format] = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".txt": "txt",
    ".json": "squad",
    ".conll": "conll",
    ".conll2003": "conll",
    ".iob": "conll",
    ".iob2": "conll",
    ".bio": "conll",
    ".bioes": "conll",
    ".ner": "conll",
}

MOST_NAMED = 20
"""Columns that a message lists."""

TEXT_COLUMN = "text"
"""The one column of a .txt file."""


class FieldRecord(NamedTuple):
    """The values of one row, and its number."""

    number: int
    values: tuple[Value, ...]


def format_of(path: Path) -> Format:
    """The format that a file's name says; an unknown one is refused with those that are read."""
    check_readable(path)
    suffix = path.suffix.lower()
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    raise DataError(
        f"{path.name} has no format that Microtome reads",
        "use .csv .tsv .jsonl .parquet or .txt; CoNLL columns may have any name: --kind tokens",
    )


def format_as(path: Path, kind: Kind | None) -> Format:
    """The format of a file of this kind; words and tags that aren't JSON or parquet are CoNLL's."""
    if kind != "tokens":
        return format_of(path)
    check_readable(path)
    named = SUFFIXES.get(path.suffix.lower(), "conll")
    return named if named in ("jsonl", "parquet") else "conll"


def column_names(
    path: Path, format: Format, header: tuple[str, ...] | None = None, *, checked: bool = True
) -> tuple[str, ...]:
    """The columns of a file; ``header`` names them where the file doesn't.

    A name that occurs twice is refused, unless it isn't ``checked``: the line may be no header.
    """
    if format == "txt":
        check_readable(path)
        return (TEXT_COLUMN,)
    if format == "parquet":
        return _parquet_columns(path)
    if format == "conll":
        check_readable(path)
        return (WORDS, TAGS)
    if format == "jsonl":
        first = next(read_objects(path), None)
        if first is None:
            raise DataError(f"{path.name} has no rows")
        return tuple(first[1])
    rows = _field_rows(path, format)
    try:
        first_row = next(rows)[1]
    except StopIteration:
        raise DataError(f"{path.name} has no rows") from None
    return header or (_checked_header(path, first_row) if checked else tuple(first_row))


def read_records(
    path: Path,
    format: Format,
    columns: Sequence[str],
    *,
    header: tuple[str, ...] | None = None,
    broken: list[int] | None = None,
) -> Iterator[FieldRecord]:
    """The values of ``columns``, row by row.

    If ``broken`` is a list, rows with a wrong number of fields (txt: empty lines) are put there, by
    their number, instead of being refused (txt: read as empty texts).
    """
    if format == "txt":
        return _text_records(path, broken)
    if format == "parquet":
        return _parquet_records(path, columns)
    if format == "jsonl":
        return _json_records(path, columns)
    if format == "conll":
        sentences = read_conll(path, *columns[:2])
        return (FieldRecord(number, (words, tags)) for number, words, tags in sentences)
    return _field_records(path, _field_rows(path, format), columns, header, broken)


def _field_rows(path: Path, format: Format) -> Iterator[Fields]:
    if format == "csv":
        return csv_rows(path, read_lines(path))
    if format == "tsv":
        # GLUE's tsv knows no quotes: a tab ends a field, a line end a row, and that is all.
        return (
            (line.number, line.text.split("\t") if line.text else []) for line in read_lines(path)
        )
    raise DataError(f"{path.name} is read as a table, but its format is {format}")


def _checked_header(path: Path, names: list[str]) -> tuple[str, ...]:
    twice = _twice(names)
    if twice is not None:
        raise at_line(path, 1, f"column {twice!r} twice in the header")
    return tuple(names)


def _twice(names: Sequence[str]) -> str | None:
    return next((name for name, n in sorted(Counter(names).items()) if n > 1), None)


def _field_records(
    path: Path,
    rows: Iterator[Fields],
    columns: Sequence[str],
    header: tuple[str, ...] | None,
    broken: list[int] | None,
) -> Iterator[FieldRecord]:
    if header is None:
        header = _checked_header(path, next(rows, (1, []))[1])
    places = [_place(path, header, column) for column in columns]
    n_fields = len(header)
    blank: int | None = None
    for number, fields in rows:
        if not fields and n_fields == 1:
            yield FieldRecord(number, ("",) * len(places))
        elif not fields and broken is None:
            # Perhaps the end of the file; a row after it says otherwise.
            blank = blank or number
        elif blank is not None:
            raise at_line(path, blank, "an empty line between rows", "remove it")
        elif len(fields) == n_fields:
            yield FieldRecord(number, tuple(fields[place] for place in places))
        elif broken is not None:
            broken.append(number)
        else:
            raise at_line(path, number, f"expected {n_fields} fields, got {len(fields)}")


def _text_records(path: Path, broken: list[int] | None) -> Iterator[FieldRecord]:
    for line in read_lines(path):
        if line.text or broken is None:
            yield FieldRecord(line.number, (line.text,))
        else:
            broken.append(line.number)


def _place(path: Path, header: tuple[str, ...], column: str) -> int:
    if column in header:
        return header.index(column)
    raise missing_column(path, column, header)


def missing_column(path: Path, column: str, there: Sequence[str], *, option: str = "") -> DataError:
    """The error for a column that isn't there, with those that are, and how to name one."""
    shown = [name if len(name) <= 40 else name[:40] + "…" for name in there[:MOST_NAMED]]
    more = f" and {len(there) - MOST_NAMED:,} more" if len(there) > MOST_NAMED else ""
    named = f"; name the right one: {option}" if option else ""
    if path.suffix.lower() == ".csv" and len(there) == 1 and ";" in there[0]:
        named = "; the fields of a .csv are divided by commas: save it with commas, or as .tsv"
    return DataError(
        f"{path.name} has no column {column!r}",
        f"its columns are {', '.join(map(repr, shown))}{more}{named}",
    )


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Value]]]:
    """The objects of a JSON lines file, each with the number of its line."""
    for line in without_blank_end(path, read_lines(path)):
        yield line.number, _json_object(path, line)


def _json_object(path: Path, line: Line) -> dict[str, Value]:
    try:
        value = json.loads(line.text)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise at_line(path, line.number, f"broken JSON ({reason})") from error
    if not isinstance(value, dict):
        kind = type(value).__name__
        raise at_line(path, line.number, f"expected a JSON object, got {kind}")
    return value


def _json_records(path: Path, columns: Sequence[str]) -> Iterator[FieldRecord]:
    for number, fields in read_objects(path):
        missing = next((column for column in columns if column not in fields), None)
        if missing is not None:
            there = ", ".join(map(repr, fields))
            raise at_line(path, number, f"no {missing!r}", f"its fields are {there}")
        yield FieldRecord(number, tuple(fields[column] for column in columns))


def _parquet_file(path: Path):  # type: ignore[no-untyped-def]  # pyarrow has no types
    import pyarrow
    import pyarrow.parquet

    check_readable(path)
    with _refusing_broken(path):
        return pyarrow.parquet.ParquetFile(path)


@contextmanager
def _refusing_broken(path: Path) -> Iterator[None]:
    """What pyarrow raises for a broken file, at its start or far within, as one of our errors."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        raise DataError(
            f"{path.name} isn't a parquet file that can be read", "get it again"
        ) from error


def _parquet_columns(path: Path) -> tuple[str, ...]:
    with _parquet_file(path) as file, _refusing_broken(path):
        names = tuple(file.schema_arrow.names)
    twice = _twice(names)
    if twice is not None:
        raise DataError(f"{path.name} has two columns {twice!r}")
    return names


def _parquet_records(path: Path, columns: Sequence[str]) -> Iterator[FieldRecord]:
    with _parquet_file(path) as file:
        names = _parquet_columns(path)
        for column in columns:
            _place(path, names, column)
        number = 0
        with _refusing_broken(path):
            for batch in file.iter_batches(batch_size=8192, columns=list(dict.fromkeys(columns))):
                values = [batch.column(column).to_pylist() for column in columns]
                for row in zip(*values, strict=True):
                    number += 1
                    yield FieldRecord(number, cast(tuple[Value, ...], row))
        if number != file.metadata.num_rows:  # a broken column ends the others, without an error
            raise DataError(
                f"{path.name} has {file.metadata.num_rows} rows, and {number} can be read",
                "get it again",
            )
