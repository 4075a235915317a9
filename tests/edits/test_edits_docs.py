"""docs/edits.md says what the code does: every table and every error on the page is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from microtome import edits as package
from microtome.edits import catalogue, parse
from microtome.errors import EditError

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "edits.md").read_text(encoding="utf-8")


def table_under(header):
    """The cells of the table whose first line starts with `header`, without its marks."""
    lines = PAGE[PAGE.index(f"| {header} |") :].split("\n\n")[0].splitlines()[2:]
    # An escaped bar belongs to a cell; it is hidden while the cells are taken apart.
    split = [line.replace(r"\|", "\0").strip("| ").split(" | ") for line in lines]
    return [[cell.replace("\0", "|").strip("`") for cell in cells] for cells in split]


def test_the_table_of_edits_is_the_catalogue():
    assert table_under("form") == [[form.form, form.summary] for form in catalogue()]


def test_the_orders_on_the_page_are_those_of_the_edits():
    rows = table_under("edit")
    assert len(rows) >= 6
    for text, order in rows:
        assert parse(text)[0].order(6) == tuple(int(layer) for layer in order.split())


def test_the_canonical_texts_on_the_page_are_those_of_the_edits():
    rows = table_under("written")
    assert len(rows) >= 6
    for written, canonical in rows:
        assert parse(written).text == canonical


def test_the_errors_on_the_page_are_those_that_are_raised():
    transcript = PAGE[PAGE.index(">>> ") :].split("\n```")[0].splitlines()
    assert len(transcript) >= 10
    for code, shown in zip(transcript[::2], transcript[1::2], strict=True):
        with pytest.raises(EditError) as caught:
            eval(code.removeprefix(">>> "), vars(package).copy())
        assert str(caught.value) == shown
