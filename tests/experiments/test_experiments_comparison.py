"""``microtome compare``: several checkpoints on the same rows, against plain transformers."""

from __future__ import annotations

import json
import shutil
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.stats import binom, spearmanr
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from microtome.cli import run
from microtome.errors import RunError
from microtome.experiments.field.comparison import measure
from microtome.runs import open_run
from microtome.statistics import compare_accuracy
from support.labelled_texts import sentences, write_rows
from support.sentence_folders import sentence_folder
from support.tiny import save_tiny

pytestmark = pytest.mark.usefixtures("own_folder")

TEXTS = sentences(60)
FAMILIES = {"first": "bert", "second": "roberta", "third": "albert"}


def named(labels):
    names = dict(enumerate(labels))
    return {"id2label": names, "label2id": {name: index for index, name in names.items()}}


def classifier(folder, family, labels=("no", "yes"), seed=0):
    return save_tiny(
        folder, family, "classification", with_tokenizer=True, seed=seed, **named(labels)
    )


@pytest.fixture
def models(tmp_path):
    """Three families with their own tokenizers; the second has its labels the other way round."""
    orders = {"first": ("no", "yes"), "second": ("yes", "no"), "third": ("no", "yes")}
    for seed, (name, family) in enumerate(FAMILIES.items()):
        classifier(tmp_path / name, family, orders[name], seed=seed)
    return list(FAMILIES)


def plain_answers(folder):
    """What plain transformers answers, text by text, as the names of labels."""
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        logits = [
            model(
                **tokenizer(text, return_tensors="pt", return_token_type_ids=False)
            ).logits.argmax()
            for text in TEXTS
        ]
    return [model.config.id2label[int(one)] for one in logits]


@pytest.fixture
def rows(tmp_path, models):
    """Labels that the first model gives, but for every fifth row: it has learnt them."""
    labels = [answer == "yes" for answer in plain_answers(models[0])]
    flipped = [label != (i % 5 == 0) for i, label in enumerate(labels)]
    assert 0 < sum(flipped) < len(TEXTS)
    return write_rows(tmp_path / "rows.csv", TEXTS, flipped)


def labels_in(file):
    return [line.rpartition(",")[2] for line in file.read_text().splitlines()[1:]]


def asked(capsys, *arguments):
    code = run([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


def compared(capsys, *arguments):
    code, document = asked(capsys, "compare", *arguments, "--workers", "0", "--quiet")
    assert code == 0, document
    return document


def test_scores_and_pairs_equal_those_of_plain_transformers(models, rows, capsys):
    document = compared(capsys, *models, "--data", rows, "--out", "run")
    gold = labels_in(rows)
    right = {
        name: np.array([a == b for a, b in zip(plain_answers(name), gold, strict=True)], float)
        for name in models
    }
    assert {m["model"]: m["score"] for m in document["models"]} == pytest.approx(
        {name: answers.mean() for name, answers in right.items()}
    )
    assert document["models"][0]["score"] == pytest.approx(0.8)
    pairs = list(combinations(models, 2))
    assert [(d["a"], d["b"]) for d in document["differences"]] == pairs
    p = []
    for (a, b), found in zip(pairs, document["differences"], strict=True):
        gained, lost = int((right[b] > right[a]).sum()), int((right[b] < right[a]).sum())
        # McNemar's exact test: of the rows that differ, either side is as likely.
        p.append(min(1.0, 2 * binom.cdf(min(gained, lost), gained + lost, 0.5)))
        assert found["change"] == pytest.approx((gained - lost) / len(TEXTS))
        assert found["p"] == pytest.approx(p[-1])
        interval = compare_accuracy(right[b], right[a]).difference
        assert (found["low"], found["high"]) == pytest.approx((interval.low, interval.high))
    steps = np.maximum.accumulate(np.sort(p) * [3, 2, 1]).clip(max=1)
    assert np.sort([d["p_holm"] for d in document["differences"]]) == pytest.approx(steps)
    for found, value in zip(document["differences"], p, strict=True):
        assert found["p_holm"] >= value


def test_the_document_has_its_shape(models, rows, capsys):
    document = compared(capsys, *models, "--data", rows, "--out", "run")
    assert {"schema_version", "task", "primary", "models", "differences"} <= document.keys()
    assert (document["task"], document["primary"]) == ("rows.csv", "accuracy")
    for model in document["models"]:
        wanted = {"model", "score", "low", "high", "parameters", "latency_ms"}
        assert wanted <= model.keys()
        assert model["low"] < model["score"] < model["high"]
        plain = AutoModelForSequenceClassification.from_pretrained(model["model"])
        assert model["parameters"] == plain.num_parameters()
        assert model["latency_ms"] > 0
        assert model["n"] == len(TEXTS)
    assert document["models"][0]["speed"] == 1
    for pair in document["differences"]:
        assert pair.keys() >= {"a", "b", "change", "low", "high", "p", "p_holm"}
        assert pair["low"] <= pair["change"] <= pair["high"]


def test_a_model_that_has_not_learnt_is_said_not_to_have(models, rows, capsys, tmp_path):
    stuck = AutoModelForSequenceClassification.from_pretrained("third")
    torch.nn.init.zeros_(stuck.classifier.weight)
    stuck.save_pretrained("third")
    document = compared(capsys, *models, "--data", rows, "--out", "run")
    labels = labels_in(rows)
    commonest = max(labels.count("yes"), labels.count("no")) / len(labels)
    assert {model["constant"] for model in document["models"]} == {commonest}
    learnt = {model["model"]: model["has_learnt"] for model in document["models"]}
    assert learnt["first"]
    assert not learnt["third"]
    assert document["finding"].startswith("first is ")
    lost = document["finding"].partition("so the task isn't learnt: ")[2]
    assert "third (" in lost
    assert "first (" not in lost


def test_the_terminal_shows_both_tables(models, rows, capsys):
    assert run(["compare", *models, "--data", str(rows), "--out", "run", "--workers", "0"]) == 0
    printed = capsys.readouterr().out
    assert "accuracy on 60 rows" in printed
    assert "p (Holm)" in printed
    assert "report: run/report.html" in printed


def write_pairs(file):
    """Pairs of texts whose words the tiny tokenizers know, with a number."""
    pairs = [(text, f"{TEXTS[-1 - i]} cat", (7 * i) % 11 / 10) for i, text in enumerate(TEXTS)]
    file.write_text("text,pair,label\n" + "".join(f"{a},{b},{n}\n" for a, b, n in pairs))
    return pairs


def test_embedders_are_compared_by_the_correlation_of_their_cosines(capsys, tmp_path):
    pairs = write_pairs(tmp_path / "pairs.csv")
    folders = [sentence_folder(tmp_path / family, family) for family in ("bert", "mpnet")]
    document = compared(capsys, *folders, "--data", "pairs.csv", "--out", "run")
    expected = []
    for folder in folders:
        model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        cosines = [
            torch.cosine_similarity(*(_mean(model, tokenizer, text) for text in pair), dim=0)
            for *pair, _ in pairs
        ]
        numbers = [number for *_, number in pairs]
        expected.append(spearmanr(torch.stack(cosines).numpy(), numbers).statistic)
    assert [model["score"] for model in document["models"]] == pytest.approx(expected, abs=1e-3)
    (pair,) = document["differences"]
    assert pair["change"] == pytest.approx(expected[1] - expected[0], abs=1e-3)
    assert abs(pair["change"]) > 0.01
    assert pair["p_holm"] == pair["p"]
    assert (document["primary"], document["unit"]) == ("cosine_spearman", "pairs")


@torch.no_grad()
def _mean(model, tokenizer, text):
    given = tokenizer(
        text, return_tensors="pt", truncation=True, max_length=40, return_token_type_ids=False
    )
    return model.eval()(**given).last_hidden_state[0].mean(dim=0)


def refused(capsys, *arguments):
    code, document = asked(capsys, "compare", *arguments, "--workers", "0", "--quiet")
    assert code == 2, document
    told = f"{document['error']['message']}; {document['error']['hint']}"
    assert "\n" not in told
    return told


def test_one_model_or_one_model_twice_is_refused(models, rows, capsys, tmp_path):
    data = ("--data", rows, "--out", "run")
    assert "two models or more, got 1" in refused(capsys, "first", *data)
    assert "got first twice" in refused(capsys, "first", "second", "first", *data)
    shutil.copytree("first", "copied")
    assert "got first and copied, its copy" in refused(capsys, "first", "copied", *data)
    assert not (tmp_path / "run").exists()


def test_a_model_that_does_not_fit_is_named(models, rows, capsys, tmp_path):
    save_tiny(tmp_path / "headless", "bert", "none", with_tokenizer=True)
    classifier(tmp_path / "four", "bert", ("a", "b", "c", "d"))
    for unfit, why in (("headless", "needs a classification head"), ("four", "4")):
        told = refused(capsys, "first", unfit, "--data", rows, "--out", "run")
        assert told.startswith(f"{unfit}: ")
        assert why in told
    assert not (tmp_path / "run").exists()


def test_models_that_are_scored_by_different_metrics_are_refused(capsys, tmp_path):
    sentence_folder(tmp_path / "embedder")
    save_tiny(tmp_path / "scorer", "bert", "classification", with_tokenizer=True, num_labels=1)
    write_pairs(tmp_path / "pairs.csv")
    told = refused(capsys, "embedder", "scorer", "--data", "pairs.csv", "--out", "run")
    assert "scorer is scored on pairs.csv as regression, and embedder as similarity" in told


def test_resuming_runs_nothing_twice_and_one_model_more_runs_only_that(models, rows, capsys):
    before = compared(capsys, *models[:2], "--data", rows, "--out", "run")
    stored = {file: file.stat().st_mtime_ns for file in open_run("run").folder.glob("records/*")}
    assert len(stored) == 4  # two models' answers, their comparison, their times
    assert compared(capsys, *models[:2], "--data", rows, "--out", "run") == before
    wider = compared(capsys, *models, "--data", rows, "--out", "run")
    assert all(file.stat().st_mtime_ns == time for file, time in stored.items())
    assert len(list(open_run("run").folder.glob("records/*"))) == 4 + 3
    assert [model["score"] for model in wider["models"][:2]] == [
        model["score"] for model in before["models"]
    ]
    assert len(wider["differences"]) == 3


def test_the_run_of_another_request_is_refused(models, rows, capsys):
    compared(capsys, *models[:2], "--data", rows, "--out", "run")
    told = refused(capsys, *models[:2], "--data", rows, "--limit", "20", "--out", "run")
    assert "run holds a run of a different request" in told
    assert "limit" in told


def test_the_page_has_every_model_and_is_written_anew_from_records(models, rows, capsys):
    document = compared(capsys, *models, "--data", rows, "--out", "run")
    page = open_run("run").folder / "report.html"
    assert str(page) == document["report"]
    written = page.read_text()
    assert "Comparison of first, second and third on rows.csv" in written
    assert written.count("<svg") >= 2
    page.unlink()
    assert run(["report", "run"]) == 0
    assert page.read_text() == written


def test_a_failed_trial_is_told_and_retried(models, rows, capsys, monkeypatch):
    def fails(request, context):
        raise RunError("no clock here")

    arguments = ("compare", *models[:2], "--data", rows, "--out", "run", "--workers", "0")
    with monkeypatch.context() as patched:
        patched.setattr(measure, "time_models", fails)
        code, document = asked(capsys, *arguments, "--quiet")
    assert code == 1
    assert "no clock here" in document["error"]["message"]
    assert "no clock here" in (open_run("run").folder / "report.html").read_text()
    code, document = asked(capsys, *arguments, "--quiet", "--retry-failed")
    assert code == 0
    assert len(document["models"]) == 2
