"""``vocabulary(FILE)`` on the command line: operate, evaluate, and what is refused."""

from __future__ import annotations

import csv
import json

import pytest

from microtome.cli import run
from support.sentence_folders import sentence_folder
from support.tiny import WORDS, save_tiny


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def pairs(tmp_path):
    """Ten pairs with a number, of a few words each."""
    rows = [
        (" ".join(WORDS[i : i + 4]), " ".join(WORDS[i + 2 : i + 5]), i * 7 % 11 / 2)
        for i in range(10)
    ]
    with (tmp_path / "pairs.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("text", "pair", "label"), *rows])
    return tmp_path / "pairs.csv"


def document(capsys, *arguments):
    assert run([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_scores_on_the_texts_of_the_file_are_those_of_the_whole_model(tmp_path, pairs, capsys):
    folder = sentence_folder(tmp_path / "model")
    edit = f"vocabulary({pairs})"
    whole = document(capsys, "evaluate", folder, "--data", pairs)
    smaller = document(capsys, "evaluate", folder, "--data", pairs, "--edit", edit)
    assert smaller["scores"] == whole["scores"]
    assert [text.partition("=")[0] for text in smaller["edits"]] == ["vocabulary(sha256"]
    done = document(capsys, "operate", folder, edit, "--out", tmp_path / "out")
    assert done["edits"] == [edit]
    assert done["certificate"]["passed"]
    names = {check["name"] for check in done["certificate"]["checks"]}
    assert {"vocabulary", "same tokens", "same outputs", "no new unknowns"} <= names
    assert (tmp_path / "out" / "modules.json").is_file()
    saved = document(capsys, "evaluate", tmp_path / "out", "--data", pairs)
    assert saved["scores"] == whole["scores"]


def test_evaluate_after_edits_is_evaluate_of_the_operated_folder(tmp_path, pairs, capsys):
    folder = sentence_folder(tmp_path / "model")
    edits = ("keep(0,2)", f"vocabulary({pairs})")
    asked = [item for edit in edits for item in ("--edit", edit)]
    edited = document(capsys, "evaluate", folder, "--data", pairs, *asked)
    document(capsys, "operate", folder, *edits, "--out", tmp_path / "out")
    saved = document(capsys, "evaluate", tmp_path / "out", "--data", pairs)
    assert edited["scores"] == saved["scores"]
    assert edited["edits"] == saved["edits"]


@pytest.mark.parametrize("command", ["operate", "evaluate", "finetune"])
def test_a_missing_file_is_one_line_before_anything_is_read(command, tmp_path, pairs, capsys):
    model = save_tiny(tmp_path / "model", "bert", "none", with_tokenizer=True)
    missing = f"vocabulary({tmp_path / 'none.txt'})"
    rest = {
        "operate": [missing, "--out", tmp_path / "out"],
        "evaluate": ["--data", pairs, "--edit", missing],
        "finetune": ["--data", pairs, "--edit", missing, "--out", tmp_path / "out"],
    }[command]
    assert run([command, str(model), *map(str, rest)]) == 2
    shown = capsys.readouterr().err.strip().splitlines()
    assert len(shown) == 1
    assert "none.txt doesn't exist" in shown[0]
    assert not (tmp_path / "out").exists()


def test_the_cost_says_smaller_and_not_faster(tmp_path, pairs, capsys):
    folder = sentence_folder(tmp_path / "model")
    assert run(["operate", str(folder), f"vocabulary({pairs})", "--out", str(tmp_path / "o")]) == 0
    lines = capsys.readouterr().out.splitlines()
    cost = {line.split("  ")[0]: line.replace(",", "").split()[-2:] for line in lines if line}
    assert int(cost["parameters"][1]) < int(cost["parameters"][0])
    assert int(cost["bytes"][1]) < int(cost["bytes"][0])
    assert cost["FLOPs per token"][0] == cost["FLOPs per token"][1]
