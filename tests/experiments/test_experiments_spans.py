"""Decoding, duplication and ensembling of questions whose passages go over several windows."""

from __future__ import annotations

import json

import numpy as np
import pytest

from microtome.cli import run
from microtome.errors import RequestError
from microtome.experiments import find_experiment, subject_of
from microtome.models import load
from microtome.observe.evaluation import encode_for, text_clusters
from microtome.tasks import DataSpec, evaluate_answers, open_data
from support.experiment_rows import study_here
from support.tiny import save_tiny, tiny_tokenizer
from support.training_rows import rows

FEW_POSITIONS = 24  # so that most passages need two windows


@pytest.fixture
def model(tmp_path):
    config = {"max_position_embeddings": FEW_POSITIONS}
    return save_tiny(tmp_path / "model", "bert", "mlm", with_tokenizer=True, **config)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "squad2"
    for name, n, seed in (("train", 24, 0), ("dev", 16, 1)):
        source = rows(tmp_path / "made", "spans", n=n, seed=seed)._source.path
        folder.mkdir(exist_ok=True)
        (folder / f"{name}-v2.0.json").write_bytes(source.read_bytes())
    return folder


def subject_for(model, data):
    return subject_of(str(model), DataSpec(task="squad2", path=data))


def test_windows_of_one_article_are_one_cluster(model, data):
    dataset = open_data(DataSpec("squad2", data, "dev"))
    encoded = encode_for(load(str(model)), tiny_tokenizer("bert"), dataset)
    clusters = text_clusters(dataset, encoded)
    assert len(encoded.offsets) - 1 > len(dataset)  # else this proves nothing
    assert len(clusters) == len(encoded.offsets) - 1
    assert (clusters == dataset.clusters[encoded.of_row]).all()


def test_questions_are_decoded_window_by_window(model, data, tmp_path):
    found = study_here("decoding", subject_for(model, data), tmp_path / "run").parts[0].rows
    assert [row["depth"] for row in found] == [0, 1, 2, 3]
    assert all(row["low"] <= row["accuracy"] <= row["high"] for row in found)


def f1_by_hand(model, data, members):
    """Summed probabilities over all tokens of a question; the best pair, or no answer."""
    dataset = open_data(DataSpec("squad2", data, "dev"))
    windows = encode_for(load(str(model)), tiny_tokenizer("bert"), dataset)
    answers = []
    for number, row in enumerate(dataset.rows()):
        own = [w for w in range(len(windows.of_row)) if windows.of_row[w] == number]
        tokens = np.arange(windows.offsets[own[0]], windows.offsets[own[-1] + 1])
        sums = sum(np.exp(m[tokens]) / np.exp(m[tokens]).sum(0) for m in members)
        place = dict(zip(tokens.tolist(), sums, strict=True))
        pairs = [
            (place[i][0] * place[j][1], windows.char_starts[i], windows.char_ends[j])
            for w in own
            for i in range(windows.offsets[w], windows.offsets[w + 1])
            for j in range(i, min(i + 30, windows.offsets[w + 1]))
            if windows.char_starts[i] >= 0 and windows.char_starts[j] >= 0
        ]
        score, start, end = max(pairs)
        empty = min(place[windows.offsets[w]].prod() for w in own)
        answers.append("" if empty > score else row.pair[start:end])
    return evaluate_answers(dataset, answers).scores["f1"].value


def test_deeper_question_answerers_are_trained_scored_and_summed(model, data, tmp_path, capsys):
    recipe = {"epochs": 1, "learning_rate": 1e-3, "fraction": 16.0}
    given = {"layers": [3, 4], "seeds": [0, 1], "scan": True, **recipe}
    done = study_here("duplication", subject_for(model, data), tmp_path / "deeper", **given)
    trained = [row for row in done.parts[0].rows if row["stage"] == "finetuned"]
    assert {row["metric"] for row in trained} == {"exact_match", "f1"}
    assert {(row["layers"], row["seed"]) for row in trained} == {(3, 0), (3, 1), (4, 0), (4, 1)}
    assert {row["n"] for row in trained} == {16}  # questions, not windows
    where = ["--from", str(tmp_path / "deeper"), "--out", str(tmp_path / "sums"), "--halves", "3"]
    assert run(["run", "ensembling", "--workers", "0", "--json", *where]) == 0
    document = json.loads(capsys.readouterr().out)
    row = next(r for r in document["rows"] if r["rule"] == "baseline" and r["metric"] == "f1")
    assert row["members"] == "3:0, 3:1"
    members = [
        done.result.arrays(record.hash)["logits"]
        for record in done.result.records.values()
        if record.name == "finetuning.train" and not record.request["edits"]
    ]
    assert row["value"] == pytest.approx(f1_by_hand(model, data, members))


def test_a_classifier_is_refused_for_questions(data, tmp_path):
    folder = save_tiny(tmp_path / "classifier", "bert", "classification", with_tokenizer=True)
    experiment = find_experiment("duplication")
    with pytest.raises(RequestError, match="classification head"):
        experiment.plan(subject_for(folder, data), experiment.settings({}))
