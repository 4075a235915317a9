"""A masked LM on plain text: scored on hidden tokens, examined without any label or training."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM

from microtome.cli import run
from microtome.tasks import DataSpec, encode, open_data
from microtome.tasks.encoding.masking import masked
from support.labelled_texts import sentences
from support.tiny import save_tiny, tiny_tokenizer

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def data(tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("".join(f"{text}\n" for text in sentences(60)))
    return file


def document_of(capsys, *arguments, code=0):
    assert run([*map(str, arguments), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_evaluate_gives_masked_accuracy_and_loss_as_plain_transformers_has_them(
    tmp_path, data, capsys
):
    model = save_tiny(tmp_path / "base", with_tokenizer=True)
    document = document_of(capsys, "evaluate", model, "--data", data)
    dataset = open_data(DataSpec(path=data))
    encoded = masked(encode(dataset, tiny_tokenizer(), cache=False), dataset, tiny_tokenizer())
    plain = AutoModelForMaskedLM.from_pretrained(model).eval()
    right, loss = [], []
    for row in range(len(dataset)):
        part = slice(*encoded.offsets[row : row + 2])
        with torch.no_grad():
            logits = plain(torch.tensor(encoded.ids[part])[None].long()).logits[0]
        for place, target in enumerate(encoded.targets[part].tolist()):
            if target >= 0:
                right.append(int(logits[place].argmax()) == target)
                loss.append(-float(logits[place].log_softmax(-1)[target]))
    assert document["primary"] == "masked_accuracy"
    score = document["scores"]["masked_accuracy"]
    assert score["value"] == pytest.approx(np.mean(right), abs=1e-9)
    assert score["low"] <= score["value"] <= score["high"]
    assert score["n"] == 60
    assert document["loss"] == pytest.approx(np.mean(loss), rel=1e-4)


def test_an_examination_needs_neither_labels_nor_training(tmp_path, data, capsys):
    model = save_tiny(tmp_path / "base", with_tokenizer=True)
    out = tmp_path / "run"
    document = document_of(capsys, "examine", model, "--data", data, "--workers", "0", "--out", out)
    assert {part["status"] for part in document["parts"]} == {"done"}
    assert any("hidden by [MASK]" in note for note in document["notes"])
    records = [json.loads(file.read_text()) for file in (out / "records").glob("*.json")]
    assert "finetuning.train" not in {record["name"] for record in records}
    rows = [row for record in records for row in record["rows"]]
    scores = {row["value"] for row in rows if row.get("target") == "baseline"}
    (score,) = scores  # both experiments mask the same tokens
    told = document_of(capsys, "evaluate", model, "--data", data)
    assert score == pytest.approx(told["scores"]["masked_accuracy"]["value"])
    measured = {row["metric"] for row in rows if "metric" in row and "target" in row}
    assert measured == {"masked_accuracy"}
    assert "microtome finetune" not in (out / "report.html").read_text()


@pytest.mark.parametrize("head", ["none", "classification"])
def test_another_model_is_still_asked_for_labels(head, tmp_path, data, capsys):
    model = save_tiny(tmp_path / "base", head=head, with_tokenizer=True)
    error = document_of(capsys, "evaluate", model, "--data", data, code=2)["error"]
    assert "texts without labels" in error["message"]
    assert "--label-column" in error["hint"]
    asked = ["examine", model, "--data", data, "--workers", "0", "--out", tmp_path / "run"]
    code = run([str(one) for one in asked])  # a part that fails is reported with its reason
    heard = capsys.readouterr()
    assert "labels" in (heard.out if code == 0 else heard.err)
