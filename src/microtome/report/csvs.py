"""Data as CSV files (RFC 4180), safe to open in a spreadsheet.

A text that a spreadsheet would run as a formula gets a ``'`` in front; numbers stay numbers.
``unguarded`` takes it away again, so nothing is lost.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from microtome.views import Curve, HeatMap, Sentences, Table, View

Lines = Iterable[Sequence[Any]]
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")


def guarded(text: str) -> str:
    """The text with a ``'`` in front where a spreadsheet would run it."""
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(text: str) -> str:
    """The text before ``guarded``."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def csv_bytes(columns: Sequence[str], rows: Lines) -> bytes:
    """A CSV file with a header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([guarded(column) for column in columns])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue().encode("utf-8", "backslashreplace")


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return guarded(value)
    return guarded(json.dumps(value, ensure_ascii=False, default=str))


def columns_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every column of some tidy rows, in the order of their first appearance."""
    return list(dict.fromkeys(column for row in rows for column in row))


def rows_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Tidy rows as they are."""
    columns = columns_of(rows)
    return csv_bytes(columns, ([row.get(column) for column in columns] for row in rows))


def view_csv(view: View) -> bytes:
    """What a view shows, one value per row."""
    if isinstance(view, Table):
        return csv_bytes(view.columns, view.rows)
    if isinstance(view, Curve):
        return csv_bytes(("series", view.x_label, view.y_label, "low", "high"), _curve_rows(view))
    if isinstance(view, HeatMap):
        columns = (view.row_label, view.column_label, view.value_label, "marked")
        return csv_bytes(columns, _map_rows(view))
    return csv_bytes(("row", "position", "token", "decoded"), _sentence_rows(view))


def _curve_rows(view: Curve) -> Lines:
    for series in view.series:
        for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
            low = series.low[i] if i < len(series.low) else None
            high = series.high[i] if i < len(series.high) else None
            yield series.name, x, y, low, high


def _map_rows(view: HeatMap) -> Lines:
    marked = set(view.marked)
    for i, row in enumerate(view.values):
        for j, value in enumerate(row):
            yield view.rows[i], view.columns[j], value, (i, j) in marked


def _sentence_rows(view: Sentences) -> Lines:
    for label, decoded in view.decoded:
        for position, token in enumerate(decoded):
            given = view.tokens[position] if position < len(view.tokens) else None
            yield label, position, given, token
