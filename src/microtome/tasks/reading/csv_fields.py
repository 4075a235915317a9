"""Comma-separated values as RFC 4180 has them, with line numbers.

The standard library's reader stops at fields over a process-wide limit and doesn't know on which
line an open quote began; both matter for sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from microtome.tasks.reading.lines import Line, at_line


@dataclass
class _Row:
    """The row being read: finished fields, and the quoted field that is still open."""

    number: int
    fields: list[str] = field(default_factory=list)
    open: list[str] | None = None
    opened_at: int = 0


def csv_rows(path: Path, lines: Iterator[Line]) -> Iterator[tuple[int, list[str]]]:
    """The rows, each with the number of its first line; an empty line is a row of no fields."""
    row: _Row | None = None
    for line in lines:
        if row is None and '"' not in line.text:
            yield line.number, line.text.split(",") if line.text else []
            continue
        row = row or _Row(line.number)
        _scan(path, row, line)
        if row.open is None:
            yield row.number, row.fields
            row = None
    if row is not None:
        raise at_line(path, row.opened_at, "a quote opens here and never closes")


def _scan(path: Path, row: _Row, line: Line) -> None:
    """Add what ``line`` holds to the row; leaves ``row.open`` set where a quote continues."""
    text, at = line.text, 0
    while True:
        if row.open is None and not text.startswith('"', at):
            # Outside quotes a field runs to the next comma; a quote within it is a character.
            comma = text.find(",", at)
            row.fields.append(text[at:] if comma < 0 else text[at:comma])
            if comma < 0:
                return
            at = comma + 1
            continue
        if row.open is None:
            row.open, row.opened_at, at = [], line.number, at + 1
        closed = _close(row.open, text, at)
        if closed is None:
            row.open.append(line.end)
            return
        row.fields.append("".join(row.open))
        row.open = None
        if closed == len(text):
            return
        if text[closed] != ",":
            raise at_line(
                path,
                line.number,
                f"expected a comma or the line's end after a closing quote, got {text[closed]!r}",
                f"the quote opened in line {row.opened_at:,}; one within a quoted field is written"
                ' ""',
            )
        at = closed + 1


def _close(parts: list[str], text: str, at: int) -> int | None:
    """Read quoted text from ``at``; the place after its closing quote, or None if it continues."""
    while True:
        quote = text.find('"', at)
        if quote < 0:
            parts.append(text[at:])
            return None
        parts.append(text[at:quote])
        if not text.startswith('"', quote + 1):
            return quote + 1
        parts.append('"')
        at = quote + 2
