"""``microtome decode``: every depth through the output layer."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import AutoModelForMaskedLM

from microtome.cli import run
from support.tiny import save_tiny, tiny_tokenizer

TEXT = "the cat sees a big dog ."


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def model(tmp_path):
    return save_tiny(tmp_path / "model", "bert", with_tokenizer=True)


def plain_tokens(folder, text):
    """The argmax of the MLM head on every hidden state, by plain transformers."""
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    tokenizer = tiny_tokenizer("bert")
    batch = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        states = model(**batch, output_hidden_states=True).hidden_states
        ids = [model.cls(state).argmax(-1)[0].tolist() for state in states]
    return batch["input_ids"][0].tolist(), ids, tokenizer


def test_one_text_is_decoded_as_by_plain_transformers(model, capsys):
    assert run(["decode", str(model), "--text", TEXT, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    given, by_depth, tokenizer = plain_tokens(model, TEXT)
    assert document["input"] == tokenizer.convert_ids_to_tokens(given)
    # The tiny model has rows without a token; they are shown by their number.
    wanted = [[tokenizer.convert_ids_to_tokens(i) or f"[{i}]" for i in ids] for ids in by_depth]
    assert [row["decoded"] for row in document["depths"]] == wanted
    ordinary = [i for i, token in enumerate(given) if token not in tokenizer.all_special_ids]
    for row, ids in zip(document["depths"], by_depth, strict=True):
        right = sum(ids[i] == given[i] for i in ordinary)
        assert row["accuracy"] == pytest.approx(right / len(ordinary))
        assert row["first_token_accuracy"] == float(ids[1] == given[1])
        assert 0.0 <= row["control"] <= 1.0
    assert document["readout"] == "mlm"
    assert document["tokens"] == len(ordinary)


def test_a_text_file_is_decoded(model, tmp_path, capsys):
    lines = tmp_path / "lines.txt"
    lines.write_text("the cat sees a dog .\nshe likes it\n")
    assert run(["decode", str(model), "--data", str(lines), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["examples"] == 2
    assert [row["depth"] for row in document["depths"]] == [0, 1, 2, 3]
    assert {"model", "readout", "examples", "tokens", "depths"} <= set(document)


def test_a_model_without_an_mlm_head_is_read_by_its_embeddings_or_by_a_graft(
    model, tmp_path, capsys
):
    headless = save_tiny(tmp_path / "headless", "bert", "none", with_tokenizer=True)
    assert run(["decode", str(headless), "--text", TEXT, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["readout"] == "tied"
    assert run(["decode", str(headless), "--text", TEXT, "--graft", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["readout"] == "graft"


def test_wrong_requests_are_one_line(model, capsys):
    for arguments, word in (
        (["decode", model], "--text"),
        (["decode", model, "--text", "x", "--task", "sst2"], "--text"),
        (["decode", model, "--text", TEXT, "--readout", "magic"], "magic"),
    ):
        assert run([str(a) for a in arguments]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1
        assert word in lines[0]
