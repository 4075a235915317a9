"""``microtome trim``: what can't work is refused in a line, before anything runs."""

from __future__ import annotations

import json

import pytest

from microtome.cli import run
from support.sentence_folders import sentence_folder
from support.training_rows import checkpoint, rows
from support.trimming.cases import case
from support.trimming.lessons import model_for, write_texts


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def classifier(tmp_path):
    return case("classification", tmp_path)


def refused(capsys, tmp_path, model, *options):
    """The line and the hint of a refusal; nothing else is said, and nothing is left."""
    asked = ["trim", model, *options, "--workers", 0]
    if "--out" not in options:
        asked += ["--out", tmp_path / "small"]
    assert run([*map(str, asked), "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert "\n" not in error["message"]
    assert run([str(one) for one in asked]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.strip().splitlines()[-1].startswith(f"microtome: {error['message']}")
    assert "Traceback" not in said.err
    assert not list(tmp_path.glob("small*/records/*.json"))
    return error["message"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--lose", -1), "--lose must be 0 or more points, got -1"),
        (("--speed", "abc"), "--speed expects a factor, as 2x, got 'abc'"),
        (("--speed", "2xx"), "--speed expects a factor, as 2x, got '2xx'"),
        (("--speed", "0x"), "--speed must be above 0, as 2x, got 0"),
        (("--speed", "nan"), "--speed"),
        (("--lose", "nan"), "--lose"),
        (("--minutes", 0), "--minutes must be above 0, got 0"),
        (("--minutes", "nan"), "--minutes must be above 0, got nan"),
        (("--steps", 0), "--steps must be 1 or more, got 0"),
        (("--layers", "9"), "--layers must be 1 to 2, got 9"),
        (("--layers", "3"), "--layers must be 1 to 2, got 3"),
        (("--layers", "x"), "x"),
        (("--healing-rate", 0), "--healing-rate must be above 0, got 0"),
        (("--text", "missing.txt"), "--text expects a file of texts, got missing.txt"),
        (("--also", "missing.csv"), "--also expects tasks or files, got 'missing.csv'"),
        (("--vocabulary", "missing.txt"), "--vocabulary expects a file of texts, got missing.txt"),
    ],
)
def test_a_wrong_option_is_refused_in_a_line(options, message, classifier, tmp_path, capsys):
    model, data = classifier
    assert message in refused(capsys, tmp_path, model, *data, *options)


def test_a_folder_that_is_not_empty_is_left_alone(classifier, tmp_path, capsys):
    model, data = classifier
    out = tmp_path / "taken"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    assert str(out) in refused(capsys, tmp_path, model, *data, "--out", out)
    assert [file.name for file in out.iterdir()] == ["thesis.txt"]


def test_a_file_is_no_place_for_the_run(classifier, tmp_path, capsys):
    model, data = classifier
    notes = tmp_path / "notes.txt"
    notes.write_text("years of work")
    assert f"{notes} is a file" in refused(capsys, tmp_path, model, *data, "--run", notes)
    assert notes.read_text() == "years of work"


@pytest.mark.parametrize(("name", "message"), [("a.txt", "has no text"), ("a.json", "got a.json")])
def test_a_vocabulary_that_can_not_be_is_refused_before_the_healing(
    name, message, classifier, tmp_path, capsys
):
    model, data = classifier
    (tmp_path / name).write_text("\n \n")
    options = (*data, "--vocabulary", tmp_path / name)
    assert message in refused(capsys, tmp_path, model, *options)


def test_one_layer_can_not_be_cut(tmp_path, capsys):
    _, data = case("classification", tmp_path / "rows")
    model = model_for("classification", tmp_path / "model", num_hidden_layers=1)
    assert "has 1 layer: there is nothing to cut" in refused(capsys, tmp_path, model, *data)


def test_rows_without_labels_score_nothing(tmp_path, capsys):
    model = model_for("classification", tmp_path / "model")
    texts = write_texts(tmp_path / "texts.txt", 80)
    message = refused(capsys, tmp_path, model, "--data", texts, "--text", texts)
    assert "label" in message


def test_pairs_are_not_healed_on_single_texts(tmp_path, capsys):
    model = model_for("pair", tmp_path / "model")
    rows(tmp_path, "pair", n=40)
    data = ["--data", tmp_path / "pair-40-0.jsonl", "--pair-column", "pair"]
    texts = write_texts(tmp_path / "texts.txt", 80)
    message = refused(capsys, tmp_path, model, *data, "--text", texts)
    assert "has pairs of texts, and --text has single ones" in message


def test_a_masked_model_needs_texts_of_its_own_to_be_scored_on(tmp_path, capsys):
    model = checkpoint(tmp_path / "model")
    texts = write_texts(tmp_path / "few.txt", 2)
    message = refused(capsys, tmp_path, model, "--data", texts, "--kind", "text")
    assert "rows" in message


def test_too_few_texts_to_heal_on(classifier, tmp_path, capsys):
    model, data = classifier
    few = write_texts(tmp_path / "few.txt", 9)
    message = refused(capsys, tmp_path, model, *data, "--text", few)
    assert message == "expected at least 16 texts to heal on, got 9"
    rows(tmp_path, "single", n=12)
    one_file = ["--data", tmp_path / "single-12-0.jsonl"]
    assert "has 2 independent rows to measure" in refused(capsys, tmp_path, model, *one_file)


def test_a_reranker_is_not_healed_on_single_texts(tmp_path, capsys):
    model, data = case("reranking", tmp_path)
    texts = write_texts(tmp_path / "texts.txt", 80)
    message = refused(capsys, tmp_path, model, *data, "--text", texts)
    assert "has pairs of texts, and --text has single ones" in message


def test_other_data_must_be_of_the_model_s_kind(tmp_path, capsys):
    model = sentence_folder(tmp_path / "model")
    _, data = case("similarity", tmp_path / "rows")
    message = refused(capsys, tmp_path, model, *data, "--also", "micro-cat")
    assert "--also" in message
