"""``microtome pretrain``: a model from plain text, one that goes on, and refusals in one line."""

from __future__ import annotations

import json

import pytest
from transformers import AutoModelForMaskedLM, AutoTokenizer

from microtome.cli import run
from microtome.models import load
from prose import write_prose
from tiny import save_tiny


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_prose(tmp_path_factory.mktemp("text") / "text.txt", n_paragraphs=600)


def pretrained(capsys, *arguments):
    """The document that a run prints; progress goes to the other stream."""
    assert run(["pretrain", *map(str, arguments), "--hours", "0.001", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments):
    assert run(["pretrain", *map(str, arguments)]) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert len(seen.err.splitlines()) == 1, seen.err
    return seen.err


def test_a_model_from_plain_text(text, tmp_path, capsys):
    out = tmp_path / "mine"
    document = pretrained(
        capsys, "--text", text, "--shape", "2x32", "--vocabulary", 200, "--out", out
    )
    model = AutoModelForMaskedLM.from_pretrained(out)
    assert (model.config.num_hidden_layers, model.config.hidden_size) == (2, 32)
    assert [depth["depth"] for depth in document["depths"]] == [0, 1, 2]
    assert document["steps"] >= 2
    assert AutoTokenizer.from_pretrained(out).tokenize("big dog") == ["big", "dog"]


def test_going_on_from_a_model_keeps_its_shape_and_words(text, tmp_path, capsys):
    out, start = tmp_path / "mine", save_tiny(tmp_path / "start", with_tokenizer=True)
    document = pretrained(capsys, "--from", start, "--text", text, "--out", out)
    assert [depth["depth"] for depth in document["depths"]] == [0, 1, 2, 3]
    assert load(out).config.vocab_size == load(start).config.vocab_size


@pytest.mark.parametrize(
    ("option", "value"), [("--shape", "2x32"), ("--family", "bert"), ("--vocabulary", "200")]
)
def test_a_shape_beside_a_start_is_refused(text, tmp_path, capsys, option, value):
    given = ("--from", "nano-bert", "--text", text, "--out", tmp_path / "mine", option, value)
    assert f"{option} given beside --from" in refused(capsys, *given)


def test_a_start_of_another_family_is_refused(text, tmp_path, capsys):
    start = save_tiny(tmp_path / "start", "roberta")
    line = refused(capsys, "--from", start, "--text", text, "--out", tmp_path / "mine")
    assert "family roberta, bert or albert wanted" in line


def test_a_text_that_isnt_there_is_refused(tmp_path, capsys):
    line = refused(capsys, "--text", tmp_path / "none.txt", "--out", tmp_path / "mine")
    assert "none.txt" in line
    assert not (tmp_path / "mine").exists()


def test_a_shape_that_is_none_is_refused(text, tmp_path, capsys):
    line = refused(capsys, "--text", text, "--shape", "big", "--out", tmp_path / "mine")
    assert "LAYERSxWIDTH wanted" in line
