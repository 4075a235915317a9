"""What a command prints: one JSON document, or tables for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from microtome.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SCHEMA_VERSION = 1
QUIET: ContextVar[bool] = ContextVar("quiet", default=False)
"""Whether a command says nothing but its result and its errors: ``--quiet`` sets it."""


def show(
    document: Mapping[str, Any], *, as_json: bool, for_people: Callable[[Console], None]
) -> None:
    """Print ``document`` as JSON, or let ``for_people`` draw it on the terminal."""
    if as_json:
        print_json(document)
        return
    from rich.console import Console

    for_people(Console(highlight=False))


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON document on stdout, with the schema's version."""
    text = json.dumps({"schema_version": SCHEMA_VERSION, **document}, ensure_ascii=False, indent=2)
    sys.stdout.write(text + "\n")


def print_error(kind: str, message: str, hint: str, *, as_json: bool) -> None:
    """One line on stderr; with ``--json`` the error is the document on stdout instead."""
    if as_json:
        print_json({"error": {"kind": kind, "message": message, "hint": hint}})
        return
    line = f"{message}; {hint}" if hint else message
    sys.stderr.write(f"microtome: {' '.join(line.split())}\n")


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Table:
    """A plain table; values that come from data are shown as text, never as markup."""
    from rich.markup import escape
    from rich.table import Table

    drawn = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        drawn.add_column(column, overflow="fold")
    for row in rows:
        drawn.add_row(*(escape("" if cell is None else printable(str(cell))) for cell in row))
    return drawn


def score_rows(scores: Mapping[str, Any], primary: str | None) -> list[tuple[str, str, str]]:
    """The rows of a table of scores: the metric, its value and interval in percent."""
    return [
        (
            f"{name}{' *' if name == primary else ''}",
            f"{100 * score.value:.2f}",
            f"{100 * score.low:.2f} to {100 * score.high:.2f}",
        )
        for name, score in scores.items()
    ]


def print_constant(console: Console, scores: Mapping[str, float]) -> None:
    """Under a table of scores: what one constant answer, which reads nothing, would score."""
    if scores:
        listed = ", ".join(f"{name} {100 * value:.2f}" for name, value in scores.items())
        console.print(f"one constant answer: {listed}", markup=False)


def print_notes(console: Console, notes: Iterable[str]) -> None:
    """What to know of the data, a line each."""
    for note in notes:
        console.print(f"note: {printable(note)}", markup=False)


def log(line: str) -> None:
    """A line about progress, on stderr."""
    if not QUIET.get():
        sys.stderr.write(line + "\n")
