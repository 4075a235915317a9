"""A whole trim of every job: rows, a folder that plain transformers loads, a certificate."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from microtome.cli import run
from microtome.experiments.field.trim.healing import HEALED
from microtome.statistics import halves
from microtome.trimming.saving import save_cut
from support.tiny import AUTO_CLASSES
from support.training_rows import tokenizer_for
from support.trimming.cases import FAMILIES, N_DEV, case

HEADS = {
    "classification": "classification", "tokens": "token-classification",
    "reranking": "classification", "spans": "question-answering", "similarity": "none",
    "mlm": "mlm",
}  # fmt: skip
CUT = {
    "edit", "layers", "healed", "score", "low", "high", "change", "change_low", "change_high",
    "parameters", "speed", "latency_ms", "on_frontier",
}  # fmt: skip
DOCUMENT = {"model", "task", "run", "report", "primary", "baseline", "cuts", "recommended", "out"}


def document_of(*arguments: object, code: int = 0) -> dict:
    heard = io.StringIO()
    with redirect_stdout(heard):
        assert run([str(one) for one in arguments] + ["--json"]) == code
    return json.loads(heard.getvalue())


@pytest.fixture(scope="module", params=HEADS)
def trimmed(request, tmp_path_factory):
    """The job, its base, the command without wish and place, and what the command printed."""
    job = request.param
    root = tmp_path_factory.mktemp(job)
    model, data = case(job, root)
    command = ["trim", model, *data, "--steps", 3, "--workers", 0, "--run", root / "run"]
    return job, model, command, document_of(*command, "--lose", 99, "--out", root / "out")


def records(folder: str | Path) -> list[dict]:
    return [json.loads(file.read_text()) for file in sorted(Path(folder).glob("records/*.json"))]


def test_the_document_has_its_shape_and_every_size(trimmed):
    job, _, _, document = trimmed
    assert document.keys() >= DOCUMENT
    assert document["schema_version"] == 1
    cuts = [document["baseline"], *document["cuts"]]
    assert all(cut.keys() >= CUT for cut in cuts)
    assert (document["baseline"]["edit"], document["baseline"]["layers"]) == ("", 3)
    made = [(cut["layers"], cut["healed"]) for cut in document["cuts"]]
    assert made == [(2, True), (2, False), (1, True), (1, False)]
    for cut in document["cuts"]:
        assert cut["low"] <= cut["score"] <= cut["high"]
        assert cut["change_low"] <= cut["change"] <= cut["change_high"]
        assert cut["change"] == pytest.approx(cut["score"] - document["baseline"]["score"])
        # ALBERT applies one layer less often: it has as many weights.
        shrinks = FAMILIES[job] != "albert"
        assert (cut["parameters"] < document["baseline"]["parameters"]) == shrinks


def test_the_recommended_cut_is_saved_proven_and_loaded_by_plain_transformers(trimmed):
    job, model, _, document = trimmed
    assert document["recommended"] in document["cuts"]
    out = Path(document["out"])
    plain = AUTO_CLASSES[HEADS[job]].from_pretrained(out)
    assert plain.config.num_hidden_layers == document["recommended"]["layers"]
    proof = json.loads((out / "microtome.json").read_text())["certificate"]
    assert proof["passed"] is True
    assert all(check["passed"] for check in proof["checks"])
    card = (out / "README.md").read_text()
    assert f"On {document['task']}:" in card
    said = document["finding"]
    assert said.endswith(f"Saved in {out}.")
    assert said.removesuffix(f" Saved in {out}.") in card
    if job == "similarity":
        for name in ("modules.json", "1_Pooling/config.json", "sentence_bert_config.json"):
            assert (out / name).read_bytes() == (model / name).read_bytes()


def test_another_wish_runs_no_trial_again(trimmed, tmp_path):
    _, _, command, document = trimmed
    files = sorted(Path(document["run"]).glob("records/*.json"))
    before = [file.stat().st_mtime_ns for file in files]
    out = tmp_path / "other"
    again = document_of(*command, "--lose", 98, "--out", out)  # a speed may not be measurable
    assert sorted(Path(document["run"]).glob("records/*.json")) == files
    assert [file.stat().st_mtime_ns for file in files] == before
    assert again["cuts"] == document["cuts"]
    assert Path(again["out"]) == out
    assert (out / "microtome.json").is_file()
    assert Path(document["out"]).is_dir()
    refused = document_of(*command, "--out", out, code=2)
    assert refused["error"]["kind"]


def test_its_report_opens_with_the_same_sentence(trimmed, capsys):
    _, _, _, document = trimmed
    folder = Path(document["run"])
    choice = json.loads((folder / "choice.json").read_text())
    page = (folder / "report.html").read_bytes()
    assert run(["report", str(folder)]) == 0
    assert (folder / "report.html").read_bytes() == page
    assert choice["out"] is not None
    assert choice["out"] in page.decode()


def test_a_healed_folder_is_proven_and_says_how_it_was_trained(trimmed, tmp_path):
    job, model, _, document = trimmed
    (record,) = (
        one
        for one in records(document["run"])
        if one["name"] == "trim.heal" and one["rows"][0]["layers"] == 2
    )
    row = record["rows"][0]
    assert row["steps"] == 3
    assert row["diverged"] is None
    place = Path(document["run"]) / "checkpoints" / record["hash"]
    assert [entry.name for entry in place.iterdir()] == [HEALED]  # nothing left of the training
    out = tmp_path / "healed"
    certificate = save_cut(
        model, row["edit"], place / HEALED, out, scores=lambda _: "On rows: words."
    )
    names = [check.name for check in certificate.checks]
    assert certificate.passed
    assert "after healing: round trip" in names
    assert "before healing: round trip" in names
    card = (out / "README.md").read_text()
    assert "3 steps of 64 out of" in card
    assert "On rows: words." in card
    training = json.loads((out / "healing.json").read_text())
    assert training["edit"] == row["edit"]
    assert (training["steps"], training["seed"]) == (3, 0)
    assert json.loads((out / "microtome.json").read_text())["training"] == training
    plain = AUTO_CLASSES[HEADS[job]].from_pretrained(out)
    cut_alone = AUTO_CLASSES[HEADS[job]].from_pretrained(model).state_dict()
    moved = [
        name
        for name, value in plain.state_dict().items()
        if value.shape == cut_alone[name].shape and not torch.equal(value, cut_alone[name])
    ]
    assert moved
    if job == "similarity":
        assert SentenceTransformer(str(out)).encode(["the cat"]).shape == (1, 32)


@pytest.mark.parametrize("trimmed", ["classification"], indirect=True)
def test_the_score_is_plain_transformers_on_the_half_that_nothing_was_picked_on(trimmed):
    _, _, _, document = trimmed
    root = Path(document["run"]).parent
    lines = (root / "dev.csv").read_text().splitlines()[1:]
    texts, labels = zip(*(line.rsplit(",", 1) for line in lines), strict=True)
    (picking,) = halves(N_DEV, n_splits=1)
    plain = AUTO_CLASSES["classification"].from_pretrained(document["out"]).eval()
    tokenizer = tokenizer_for("bert")
    with torch.no_grad():
        found = [
            int(plain(**tokenizer(text, return_tensors="pt")).logits.argmax()) for text in texts
        ]
    right = np.array([("no", "yes")[a] == gold for a, gold in zip(found, labels, strict=True)])
    assert document["recommended"]["score"] == pytest.approx(right[~picking].mean())
