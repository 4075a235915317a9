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

from microtome.views import Bars, Curve, HeatMap, Panels, Sentences, Table, View, ends_at

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
    """What a view shows, one value per row; of panels, with the name of each."""
    if isinstance(view, Panels):
        columns = dict.fromkeys(name for panel in view.panels for name in _content(panel)[0])
        rows = [
            {"panel": panel.title} | dict(zip(_content(panel)[0], row, strict=True))
            for panel in view.panels
            for row in _content(panel)[1]
        ]
        return csv_bytes(
            ["panel", *columns], ([row.get(name) for name in ("panel", *columns)] for row in rows)
        )
    return csv_bytes(*_content(view))


def _content(view: Curve | HeatMap | Bars | Table | Sentences) -> tuple[Sequence[str], Lines]:
    """The columns of a view's file, and its lines."""
    if isinstance(view, Table):
        return _with_marks(view)
    if isinstance(view, Curve):
        return ("series", view.x_label, view.y_label, "low", "high"), _curve_rows(view)
    if isinstance(view, Bars):
        return (view.x_label, "series", view.y_label, "low", "high"), _bar_rows(view)
    if isinstance(view, HeatMap):
        columns = (view.row_label, view.column_label, view.value_label, "marked")
        return columns, _map_rows(view)
    return ("row", "position", "token", "decoded"), _sentence_rows(view)


def labels_above(view: Table) -> list[str]:
    """For each column of a table, the label of its group; empty where it has none."""
    labels = [label for label, span in view.groups for _ in range(span)]
    return labels + [""] * (len(view.columns) - len(labels))


def _under_groups(view: Table) -> list[str]:
    """A table's columns, each with the label of the header above it: a file has one header."""
    return [
        column if column.startswith(label) else f"{label} {column}"
        for label, column in zip(labels_above(view), view.columns, strict=True)
    ]


def _with_marks(view: Table) -> tuple[list[str], Lines]:
    """A table, each column with marks followed by one that says better or worse."""
    marks = dict.fromkeys(view.better, "better") | dict.fromkeys(view.worse, "worse")
    marked = {column for _, column in marks}
    columns: list[str] = []
    for j, name in enumerate(_under_groups(view)):
        columns += [name, f"{name} against the baseline"] if j in marked else [name]
    rows: list[list[Any]] = []
    for i, row in enumerate(view.rows):
        cells = [[v, marks.get((i, j))] if j in marked else [v] for j, v in enumerate(row)]
        rows.append([value for cell in cells for value in cell])
    return columns, rows


def _bar_rows(view: Bars) -> Lines:
    for series in view.series:
        for i, (group, value) in enumerate(zip(view.groups, series.values, strict=True)):
            yield group, series.name, value, *ends_at(series, i)


def _curve_rows(view: Curve) -> Lines:
    for series in view.series:
        for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
            yield series.name, x, y, *ends_at(series, i)
    for level in view.levels:  # the same at every x
        yield level.name, None, level.y, None, None


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
