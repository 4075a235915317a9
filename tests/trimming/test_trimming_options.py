"""Trims by other requests: minutes, deeper, fewer tokens, half precision; and trims that fail."""

from __future__ import annotations

import io
import json
import random
from contextlib import redirect_stdout
from pathlib import Path

import torch
from safetensors import safe_open
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from microtome.cli import run
from support.labelled_texts import sentences, write_rows
from support.sentence_folders import sentence_folder
from support.training_rows import checkpoint, retrieval_rows, rows, similarity_rows
from support.trimming.cases import N_TRAIN, case


def document_of(*arguments: object, code: int = 0) -> dict:
    heard = io.StringIO()
    with redirect_stdout(heard):
        assert run([str(one) for one in arguments] + ["--json"]) == code
    return json.loads(heard.getvalue())


def trim(root: Path, model: Path, data: list[str], *options: object) -> dict:
    asked = ["trim", model, *data, "--workers", 0, "--quiet", "--out", root / "out"]
    steps = () if {"--minutes", "--steps"} & {*options} else ("--steps", 2)
    return document_of(*asked, *steps, *options)


def records(document: dict) -> list[dict]:
    folder = Path(document["run"]) / "records"
    return [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]


def rows_of(document: dict, stage: str) -> list[dict]:
    every = (row for record in records(document) for row in record["rows"])
    return [row for row in every if row.get("stage") == stage]


def test_minutes_become_steps_once_and_deeper_tries_more_layers(tmp_path):
    model, data = case("classification", tmp_path)
    asked = ("--minutes", 0.03, "--deeper", "--lose", 99)
    document = trim(tmp_path, model, data, *asked)
    assert {cut["layers"] for cut in document["cuts"]} == {1, 2, 4, 5}
    assert document["recommended"]["layers"] <= 2  # more layers aren't faster
    (calibrated,) = (one for one in records(document) if one["name"] == "trim.calibrate")
    assert set(calibrated["summary"]["seconds_per_step"]) == {"1", "2", "4", "5"}
    steps = {row["layers"]: row["steps"] for row in rows_of(document, "healed")}
    n_texts = rows_of(document, "healed")[0]["texts"]
    assert all(1 <= n <= 20 * -(-n_texts // 64) for n in steps.values())
    before = {record["hash"] for record in records(document)}
    again = trim(tmp_path / "more", model, data, *asked, "--run", document["run"])
    assert {record["hash"] for record in records(again)} == before
    assert again["cuts"] == document["cuts"]


def test_fewer_layers_and_fewer_tokens_in_half_precision(tmp_path):
    model, data = case("classification", tmp_path, dtype=torch.float16)
    (tmp_path / "words.txt").write_text("the cat sees a dog\n")
    smaller = ("--vocabulary", tmp_path / "words.txt")
    learn = ("--steps", 60, "--healing-rate", 3e-3)  # a cut that gives one answer isn't saved
    document = trim(tmp_path, model, data, "--layers", 2, "--lose", 99, *smaller, *learn)
    out = Path(document["out"])
    plain = AutoModelForSequenceClassification.from_pretrained(out)
    base = AutoModelForSequenceClassification.from_pretrained(model)
    assert plain.config.num_hidden_layers == 2
    assert plain.config.vocab_size < base.config.vocab_size
    assert len(AutoTokenizer.from_pretrained(out)) == plain.config.vocab_size
    proof = json.loads((out / "microtome.json").read_text())
    assert proof["certificate"]["passed"] is True
    assert any("vocabulary" in edit for edit in proof["edits"])
    told = document["finding"].partition(f"Saved in {out}. ")[2]
    size = plain.num_parameters() / 1e6
    assert told.startswith("With the smaller vocabulary: ")
    assert told.endswith(f"{size:.1f} million parameters.")
    assert told in (out / "README.md").read_text()
    assert told in (Path(document["run"]) / "report.html").read_text()
    healed = [entry / "healed" for entry in (Path(document["run"]) / "checkpoints").iterdir()]
    assert len(healed) == 1
    for folder in (model, out, *healed):
        with safe_open(folder / "model.safetensors", "pt") as stored:
            dtypes = {stored.get_tensor(name).dtype for name in stored.keys()}  # noqa: SIM118
        assert dtypes == {torch.float16}, folder


def test_a_base_without_a_head_is_fine_tuned_first(tmp_path):
    rows(tmp_path, "single", n=150)
    data = ["--data", str(tmp_path / "single-150-0.jsonl")]
    model = checkpoint(tmp_path / "model", "distilbert", "none", std=0.05)
    recipe = ("--epochs", 5, "--learning-rate", 3e-3, "--batch-size", 8)
    document = trim(tmp_path, model, data, "--layers", 2, "--lose", 99, *recipe)
    names = [record["name"] for record in records(document)]
    assert names.count("finetuning.train") == 1
    assert document["baseline"]["score"] > 0.8
    assert all(row["fine_tuned"] for row in rows_of(document, "judged"))
    plain = AutoModelForSequenceClassification.from_pretrained(document["out"])
    assert plain.config.n_layers == 2
    assert set(plain.config.id2label.values()) == {"no", "yes"}


def test_a_healing_that_diverges_leaves_the_untrained_cuts(tmp_path):
    model, data = case("classification", tmp_path)
    document = trim(tmp_path, model, data, "--healing-rate", 1e30, "--lose", 99)
    assert all(row["diverged"] for row in rows_of(document, "healed"))
    assert [cut["healed"] for cut in document["cuts"]] == [False, False]
    assert "without training" in document["finding"]
    page = (Path(document["run"]) / "report.html").read_text()
    assert "diverged: take a smaller --healing-rate" in page
    assert (Path(document["out"]) / "microtome.json").is_file()
    assert not (Path(document["out"]) / "healing.json").exists()


def test_a_base_that_knows_nothing_gets_no_cut(tmp_path):
    model, _ = case("classification", tmp_path)
    texts = [f"{text}{' old' * (i >= 72)}" for i, text in enumerate(sentences(120))]
    labels = [i % 10 == 0 for i in range(120)]
    random.Random(0).shuffle(labels)
    train = write_rows(tmp_path / "a.csv", texts[:72], labels[:72])
    dev = write_rows(tmp_path / "b.csv", texts[72:], labels[72:])
    document = trim(tmp_path, model, ["--data", train, "--dev-data", dev], "--lose", 99)
    assert document["recommended"] is None
    assert document["out"] is None
    assert not (tmp_path / "out").exists()
    assert document["finding"].startswith("The model hasn't learnt the task: its accuracy is")
    assert not any(row["fine_tuned"] for row in rows_of(document, "judged"))


def test_an_empty_folder_is_filled(tmp_path):
    model, data = case("classification", tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    # So many steps that the cut has more answers than one, whichever library multiplies.
    document = trim(tmp_path, model, data, "--layers", 2, "--steps", 40, "--lose", 99)
    assert document["out"] == str(out)
    assert AutoModelForSequenceClassification.from_pretrained(out).config.num_hidden_layers == 2


def test_an_embedder_is_healed_on_both_texts_of_its_pairs(tmp_path):
    model = sentence_folder(tmp_path / "model", prompts={"query": "the cat "})
    similarity_rows(tmp_path, n=60)
    columns = ["--text-column", "a", "--pair-column", "b", "--label-column", "score"]
    data = ["--data", str(tmp_path / "similarity-60-0.jsonl"), *columns]
    document = trim(tmp_path, model, data, "--lose", 99, "--layers", 2)
    (healed,) = rows_of(document, "healed")
    n_scored = rows_of(document, "judged")[0]["n"]  # half of the rows that were held out
    assert document["primary"] == "cosine_spearman"
    assert healed["texts"] in (2 * (60 - 2 * n_scored), 2 * (60 - 2 * n_scored + 1))


def test_an_embedder_is_healed_on_a_search(tmp_path):
    model = sentence_folder(tmp_path / "model")
    retrieval_rows(tmp_path, n=24)
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(dict.fromkeys(sentences(N_TRAIN))) + "\n")
    data = ["--data", str(tmp_path / "beir-24-0"), "--text", str(texts)]
    document = trim(tmp_path, model, data, "--lose", 99, "--layers", 2)
    assert document["primary"] == "ndcg_at_10"
    assert document["baseline"]["score"] > 0
    # Other data is scored, too: a cut that costs nothing on one may cost much on another.
    others = [r for r in records(document) if any(row.get("stage") == "also" for row in r["rows"])]
    assert [record["columns"]["task"] for record in others] == ["micro-similarity"]


def test_an_encoder_without_modules_is_scored_on_other_pairs_with_the_pooling_asked_for(tmp_path):
    """Its healed cuts have no modules either; what they answer is the mean over their tokens."""
    _, data = case("similarity", tmp_path)
    encoder = checkpoint(tmp_path / "encoder", head="none", num_hidden_layers=2)
    document = trim(tmp_path, encoder, [*data, "--pooling", "mean"], "--layers", 1)
    also = rows_of(document, "also")
    assert [(row["layers"], row["healed"]) for row in also] == [(2, False), (1, True)]
    assert all(row["task"] == "micro-similarity" for row in _columns(document, "score_also"))


def _columns(document: dict, name: str) -> list[dict]:
    return [one["columns"] for one in records(document) if one["name"] == f"trim.{name}"]


def test_texts_and_other_data_are_read_by_the_same_columns(tmp_path):
    model, (_, train, _, dev) = case("classification", tmp_path)
    for path in (train, dev):
        named = Path(path).read_text().replace("text,label", "review,stars", 1)
        assert named.startswith("review,stars\n")
        Path(path).write_text(named)
    columns = ["--text-column", "review", "--label-column", "stars"]
    also = tmp_path / "also.csv"
    also.write_text(Path(dev).read_text())
    asked = ("--text", train, "--also", also, "--layers", 1, "--speed", 1)
    document = trim(tmp_path, model, ["--data", dev, *columns], *asked)
    healed, *_ = rows_of(document, "healed")
    assert healed["texts"] == N_TRAIN
    n_dev = len(Path(dev).read_text().splitlines()) - 1
    assert {row["n"] for row in rows_of(document, "also")} == {n_dev}
