"""What comes out of files is shown as text: it can't move a terminal's cursor or colour it."""

from __future__ import annotations

from rich.console import Console

from microtome.cli.output import print_notes, table
from microtome.errors import DataError

HOSTILE = "\x1b]0;mine\x07\x1b[2J[red]label\nnext"


def test_notes_tables_and_errors_hold_no_control_characters():
    console = Console(record=True, width=200, file=None, quiet=False)
    with console.capture() as written:
        print_notes(console, [HOSTILE])
        console.print(table("", ["label"], [[HOSTILE]]))
    shown = written.get()
    assert shown.replace("\n", "").isprintable()
    assert shown.count("\\x1b[2J[red]label next") == 2
    assert str(DataError(HOSTILE, HOSTILE)).isprintable()


def test_an_error_of_any_length_is_cut():
    assert len(str(DataError("x" * 10_000, "y" * 10_000))) < 2_010
    assert DataError("x" * 1_000).message == "x" * 1_000
