"""``microtome pretrain``: a model from plain text, one trained on, and refusals in one line."""

from __future__ import annotations

import json

import pytest
from transformers import AutoModelForMaskedLM, AutoTokenizer

from microtome.cli import run
from microtome.models import load
from support.prose import write_prose
from support.tiny import save_tiny


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


def test_a_model_that_is_trained_on_keeps_its_shape_and_words(text, tmp_path, capsys):
    out, start = tmp_path / "mine", save_tiny(tmp_path / "start", with_tokenizer=True)
    document = pretrained(capsys, "--from", start, "--text", text, "--out", out)
    assert [depth["depth"] for depth in document["depths"]] == [0, 1, 2, 3]
    assert load(out).config.vocab_size == load(start).config.vocab_size


def test_capital_letters_are_kept_where_asked_for(text, tmp_path, capsys):
    out = tmp_path / "mine"
    cased = tmp_path / "cased.txt"
    cased.write_text(text.read_text().replace("dog", "Dog"))
    shape = ("--shape", "2x32", "--vocabulary", 200)
    pretrained(capsys, "--text", cased, *shape, "--cased", "--out", out)
    assert AutoTokenizer.from_pretrained(out).tokenize("big Dog") == ["big", "Dog"]


@pytest.mark.parametrize(
    "given",
    [("--shape", "2x32"), ("--family", "bert"), ("--vocabulary", "200"), ("--cased",)],
    ids=lambda given: given[0],
)
def test_a_shape_together_with_a_start_is_refused(text, tmp_path, capsys, given):
    asked = ("--from", "nano-bert", "--text", text, "--out", tmp_path / "mine", *given)
    assert f"{given[0]} can't be combined with --from" in refused(capsys, *asked)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--shape", "12x0"), "got 0"),
        (("--shape", "2x33"), "width must be even, got 33"),
        (("--shape", "300x128"), "layers must be 1 to 256, got 300"),
        (("--shape", "96x128", "--family", "albert"), "layers must be 1 to 64, got 96"),
        (("--vocabulary", "-5"), "got -5"),
        (("--hours", "nan"), "hours must be a number above 0, got nan"),
        (("--hours", "inf"), "hours must be a number above 0, got inf"),
        (("--family", "gpt"), "family must be bert or albert, got 'gpt'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_could_never_be_trained_is_refused_at_once(text, tmp_path, capsys, given, said):
    assert said in refused(capsys, "--text", text, "--out", tmp_path / "mine", *given)
    assert not (tmp_path / "mine.pretraining").exists()


def test_a_start_of_another_family_is_refused(text, tmp_path, capsys):
    start = save_tiny(tmp_path / "start", "roberta")
    line = refused(capsys, "--from", start, "--text", text, "--out", tmp_path / "mine")
    assert "of the family roberta" in line


def test_text_without_spaces_is_refused_by_what_it_lacks(tmp_path, capsys):
    text = tmp_path / "thai.txt"
    text.write_text("\n".join(["ฉันชอบอ่านหนังสือและดื่มกาแฟในตอนเช้า" * 8] * 100))
    line = refused(capsys, "--text", text, "--shape", "2x32", "--out", tmp_path / "mine")
    assert "words need spaces between them" in line


def test_a_text_that_isnt_there_is_refused(tmp_path, capsys):
    line = refused(capsys, "--text", tmp_path / "none.txt", "--out", tmp_path / "mine")
    assert "none.txt" in line
    assert not (tmp_path / "mine").exists()


def test_a_shape_that_is_none_is_refused(text, tmp_path, capsys):
    line = refused(capsys, "--text", text, "--shape", "big", "--out", tmp_path / "mine")
    assert "shape must be LAYERSxWIDTH, got 'big'" in line
