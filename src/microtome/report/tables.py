"""A table's cells, headings and units, as the template needs them."""

from __future__ import annotations

from dataclasses import dataclass

from microtome.report.csvs import labels_above
from microtome.report.intervals import ESTIMATES, change_columns, draw_intervals
from microtome.report.text import UNITS, column_texts, heading, is_number
from microtome.views import Cell, Table

FEW = 2  # rows that are shown rather than folded


@dataclass(frozen=True)
class TableCell:
    """A cell of a table: what is shown, what it is sorted by, and how it compares to a baseline.

    ``mark`` is "better", "worse" or "", and None where no cell of the column is marked.
    """

    text: str
    value: str
    is_number: bool
    mark: str | None


def table_rows(table: Table) -> list[list[TableCell]]:
    """The cells of a table, row by row; digits are chosen by column."""
    columns = []
    with_signs = signed_columns(table)
    marks = dict.fromkeys(table.better, "better") | dict.fromkeys(table.worse, "worse")
    for j, name in enumerate(table.columns):
        cells: list[Cell] = [row[j] for row in table.rows]
        texts = column_texts(cells, percent=name in table.percent, plus=name in with_signs)
        columns.append(
            [
                TableCell(
                    text,
                    repr(v) if is_number(v) else "",
                    is_number(v),
                    marks.get((i, j), "") if any(cell[1] == j for cell in marks) else None,
                )
                for i, (v, text) in enumerate(zip(cells, texts, strict=True))
            ]
        )
    return [list(row) for row in zip(*columns, strict=True)]


def signed_columns(table: Table) -> set[str]:
    """Columns that show a plus: changes, with the ends of their intervals."""
    return {name for name in ESTIMATES if name in table.columns} | set(change_columns(table))


def group_headings(table: Table) -> list[tuple[str, int]]:
    """The upper header row: labels and how many columns each spans, drawn intervals included."""
    if not table.groups:
        return []
    rest = len(table.columns) - sum(span for _, span in table.groups)
    groups = [*table.groups, ("", rest)] if rest > 0 else list(table.groups)
    drawn_after = change_columns(table)[-1:] if draw_intervals(table) else ()
    headings, first = [], 0
    for label, span in groups:
        names = table.columns[first : first + span]
        headings.append((label, span + any(name in names for name in drawn_after)))
        first += span
    return headings


def column_units(table: Table) -> list[str]:
    """The unit of every column: points for changes of a score in percent, "" for none."""
    with_signs = signed_columns(table)
    return [
        ("points" if name in with_signs else "%") if name in table.percent else UNITS.get(name, "")
        for name in table.columns
    ]


def n_shown(table: Table) -> int:
    """How many rows are shown before the rest is folded; a few more aren't worth a fold."""
    return table.first if len(table.rows) > table.first + FEW else len(table.rows)


def column_headings(table: Table) -> list[str]:
    """The names of the columns; what the group above one says already isn't said again."""
    return [
        heading(column.removeprefix(f"{label} ") if label else column)
        for label, column in zip(labels_above(table), table.columns, strict=True)
    ]


def numeric_columns(table: Table) -> list[bool]:
    """Which columns hold numbers alone: they are set to the right."""
    return [
        any(is_number(row[j]) for row in table.rows)
        and all(row[j] is None or is_number(row[j]) for row in table.rows)
        for j in range(len(table.columns))
    ]
