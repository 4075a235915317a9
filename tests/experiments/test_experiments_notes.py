"""What the data's notes say reaches the terminal, the JSON, the stored run and its page."""

from __future__ import annotations

import json
from html import unescape

import pytest

from microtome.cli import run
from support.labelled_texts import write_cats
from support.tiny import save_tiny

pytestmark = pytest.mark.usefixtures("own_folder")

BY_INDEX = "labels taken by index (no, yes): the checkpoint's names (LABEL_0, LABEL_1)"
EMPTY = "rows.csv: 1 rows have an empty text"


@pytest.fixture
def arguments(tmp_path):
    """A head with unnamed outputs, and rows of which one is empty."""
    model = save_tiny(tmp_path / "base", "bert", "classification", with_tokenizer=True)
    data = write_cats(tmp_path / "rows.csv", 40)
    data.write_text(data.read_text() + ",no\n")
    return [str(model), "--data", str(data), "--out", str(tmp_path / "run"), "--workers", "0"]


@pytest.mark.parametrize("command", [["run", "layer-removal", "--model"], ["examine"]])
def test_notes_reach_every_page(command, arguments, tmp_path, capsys):
    left_out = ["--without", "head-disabling"] if command == ["examine"] else []
    asked = [*command, *arguments, *left_out]
    assert run(asked) == 0
    seen = " ".join(capsys.readouterr().out.split())
    assert run([*asked, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    stored = json.loads((tmp_path / "run" / "run.json").read_text())["notes"]
    assert run(["report", str(tmp_path / "run")]) == 0
    page = unescape((tmp_path / "run" / "report.html").read_text())
    for note in (BY_INDEX, EMPTY):
        assert f"note: {note}" in seen
        assert any(line.startswith(note) for line in document["notes"])
        assert any(line.startswith(note) for line in stored)
        assert page.count(note) >= 2  # with the answers, and in the facts


def test_a_title_has_the_name_of_a_folder_not_its_path(arguments, tmp_path, capsys):
    assert run(["run", "layer-removal", "--model", *arguments]) == 0
    page = unescape((tmp_path / "run" / "report.html").read_text())
    header = page[page.index("<header>") : page.index("</header>")]
    assert "Layer removal of base on" in header
    assert str(tmp_path) not in header
