"""Taggers, several labels, rerankers and embedders from a name to a folder that others load."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from seqeval.metrics import f1_score as seqeval_f1
from seqeval.scheme import IOB2
from sklearn.metrics import average_precision_score, f1_score
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

from microtome.cli import run
from microtome.errors import DataError, RequestError
from microtome.models import job_of, load
from microtome.models.checkpoint import look_at
from microtome.tasks.dataset import as_kind
from microtome.training.finetune.finetuning import finetune
from microtome.training.finetune.processes import Processes
from microtome.training.recipe import Recipe, recipe_for
from support.same_weights import same_weights
from support.sentence_folders import sentence_folder
from support.tiny import tiny_tokenizer
from support.training_rows import (
    checkpoint,
    multilabel_rows,
    reranking_rows,
    retrieval_rows,
    rows,
    similarity_rows,
    tagged_rows,
    tagged_sentences,
)

RECIPE = Recipe(learning_rate=1e-3, batch_size=8, epochs=2, max_length=32)
MAKE = {
    "tokens": tagged_rows,
    "multilabel": multilabel_rows,
    "reranking": reranking_rows,
    "similarity": similarity_rows,
    "retrieval": retrieval_rows,
}
JOBS = {"similarity": "embedding", "retrieval": "embedding"}


@pytest.fixture
def model(tmp_path):
    return checkpoint(tmp_path / "base", std=0.05)  # small weights learn in seconds


def both(kind: str, folder, n: int = 24):
    """Training and dev rows; those of retrieval are two sets of queries."""
    return MAKE[kind](folder, n=n), MAKE[kind](folder, n=12, seed=1)


@pytest.mark.parametrize("kind", MAKE)
def test_every_kind_trains_saves_says_its_job_and_is_reopened(kind, model, tmp_path):
    train, dev = both(kind, tmp_path)
    done = finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "out")
    assert done.primary == train.task.metrics[0]
    assert all(s.low <= s.value <= s.high for s in done.scores.values())
    saved = load(str(tmp_path / "out"))
    assert same_weights(saved, done.model)
    assert job_of(saved) == job_of(look_at(tmp_path / "out")) == JOBS.get(kind, kind)
    again = finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "out")
    assert again.scores == done.scores
    assert np.abs(again.logits - done.logits).max() < 1e-5


def plain_inputs(texts):
    batch = tiny_tokenizer()(texts, padding=True, return_tensors="pt")
    batch.pop("token_type_ids", None)
    return batch


def test_a_tagger_is_learnt_and_plain_transformers_scores_it_the_same(model, tmp_path):
    train, dev = both("tokens", tmp_path, n=150)
    recipe = RECIPE.but(learning_rate=3e-3, epochs=6)
    done = finetune(model, train, dev, recipe=recipe, out=tmp_path / "out")
    plain = AutoModelForTokenClassification.from_pretrained(tmp_path / "out").eval()
    assert tuple(plain.config.id2label.values()) == train.labels
    predicted, gold = [], []
    for words, tags in tagged_sentences(12, seed=1):
        batch = tiny_tokenizer()([words], is_split_into_words=True, return_tensors="pt")
        first = [batch.word_ids(0).index(word) for word in range(len(words))]
        batch.pop("token_type_ids", None)
        with torch.no_grad():
            found = plain(**batch).logits[0, first].argmax(-1).tolist()
        predicted.append([plain.config.id2label[index] for index in found])
        gold.append(tags)
    expected = seqeval_f1(gold, predicted, mode="strict", scheme=IOB2)
    assert done.scores["entity_f1"].value == pytest.approx(expected, abs=1e-9)
    assert expected > 0.8  # "good" and "bad" give every entity away


def test_several_labels_are_learnt_and_saved_as_such(model, tmp_path):
    train, dev = both("multilabel", tmp_path, n=200)
    recipe = RECIPE.but(learning_rate=3e-3, epochs=6)
    done = finetune(model, train, dev, recipe=recipe, out=tmp_path / "out")
    plain = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out").eval()
    assert plain.config.problem_type == "multi_label_classification"
    assert plain.config.id2label == {0: "good", 1: "bad", 2: "red"}
    with torch.no_grad():
        logits = plain(**plain_inputs([row.text for row in dev.rows()])).logits
    expected = f1_score(dev.targets, logits.numpy() > 0, average="micro")
    assert done.scores["micro_f1"].value == pytest.approx(expected, abs=1e-9)
    assert done.history[-1].loss < 0.9 * done.history[0].loss


def test_a_fresh_reranker_has_one_output_and_cross_encoder_scores_it_the_same(tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    # A generic tokenizer on disk doesn't say that its model takes segments: a family without them.
    model = checkpoint(tmp_path / "roberta", "roberta", std=0.05)
    train, dev = both("reranking", tmp_path, n=40)
    recipe = RECIPE.but(learning_rate=3e-3, epochs=4)
    done = finetune(model, train, dev, recipe=recipe, out=tmp_path / "out")
    assert done.model.config.num_labels == 1
    found = sentence_transformers.CrossEncoder(str(tmp_path / "out"), device="cpu")
    pairs = [(row.text, row.pair) for row in dev.rows()]
    scores = found.predict(pairs)
    ours = torch.from_numpy(done.logits[:, 0]).sigmoid().numpy()
    assert np.abs(scores - ours).max() < 1e-5
    by_query = [
        average_precision_score(dev.targets[dev.clusters == c], scores[dev.clusters == c])
        for c in np.unique(dev.clusters)
    ]
    assert done.scores["map"].value == pytest.approx(np.mean(by_query), abs=1e-6)
    assert np.mean(by_query) > 0.9  # "good" is in the relevant ones


def test_a_reranker_of_two_outputs_keeps_them(tmp_path):
    base = checkpoint(tmp_path / "two", head="classification", num_labels=2, std=0.05)
    train, dev = both("reranking", tmp_path)
    before = load(str(base)).classifier.weight
    done = finetune(base, train, dev, recipe=RECIPE.but(learning_rate=1e-12, epochs=1))
    torch.testing.assert_close(done.model.classifier.weight, before)
    rate = RECIPE.but(learning_rate=3e-3, epochs=6)
    assert finetune(base, train, dev, recipe=rate).scores["map"].value > 0.9


def test_a_reranker_made_of_an_embedder_leaves_its_modules_behind(tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    base = sentence_folder(tmp_path / "embedder", modes=("cls",))
    train, dev = both("reranking", tmp_path)
    finetune(base, train, dev, recipe=RECIPE.but(epochs=1), out=tmp_path / "out")
    assert not (tmp_path / "out" / "modules.json").exists()
    sentence_transformers.CrossEncoder(str(tmp_path / "out"), device="cpu")


@pytest.mark.parametrize("kind", ["similarity", "retrieval"])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_bare_encoder_becomes_a_folder_that_sentence_transformers_loads(
    pooling, kind, model, tmp_path
):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    train, dev = both(kind, tmp_path)
    done = finetune(model, train, dev, recipe=RECIPE, pooling=pooling, out=tmp_path / "out")
    assert done.notes == ()
    found = sentence_transformers.SentenceTransformer(str(tmp_path / "out"), device="cpu")
    texts = [row.text for row in dev.rows()]
    if kind == "similarity":
        texts = [text for row in dev.rows() for text in (row.text, row.pair)]
    theirs = found.encode(texts)
    assert np.abs(theirs - done.logits).max() < 1e-5
    if kind == "similarity":
        unit = theirs / np.linalg.norm(theirs, axis=1, keepdims=True)
        cosines = (unit[::2] * unit[1::2]).sum(1)
        expected = spearmanr(cosines, dev.targets).statistic
        assert done.scores["cosine_spearman"].value == pytest.approx(expected, abs=1e-6)


def test_a_pooling_that_nobody_named_is_the_mean_and_said(model, tmp_path):
    train, dev = both("retrieval", tmp_path)
    done = finetune(model, train, dev, recipe=RECIPE.but(epochs=1), out=tmp_path / "out")
    assert "the mean is taken" in done.notes[0]
    record = json.loads((tmp_path / "out" / "finetuning.json").read_text())
    assert record["notes"] == list(done.notes)
    with pytest.raises(Exception, match="different request: pooling"):
        finetune(
            model, train, dev, recipe=RECIPE.but(epochs=1), out=tmp_path / "out", pooling="cls"
        )


def test_an_embedders_modules_are_kept_and_its_dense_layer_is_not_trained(tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    base = sentence_folder(tmp_path / "embedder", modes=("cls",), then=("Dense", "Normalize"))
    train, dev = both("retrieval", tmp_path)
    done = finetune(base, train, dev, recipe=RECIPE, out=tmp_path / "out")
    for name in ("modules.json", "1_Pooling/config.json", "2_Dense/model.safetensors"):
        assert (tmp_path / "out" / name).read_bytes() == (base / name).read_bytes()
    found = sentence_transformers.SentenceTransformer(str(tmp_path / "out"), device="cpu")
    texts = [row.text for row in dev.rows()]
    assert np.abs(found.encode(texts) - done.logits).max() < 1e-5
    assert recipe_for(train.task, base).max_length == 40  # as its folder says
    assert recipe_for(rows(tmp_path, n=4).task, base).max_length == 128


def test_embedders_learn_what_they_are_trained_on(tmp_path):
    base = sentence_folder(tmp_path / "embedder")
    train, _ = both("similarity", tmp_path, n=120)
    recipe = RECIPE.but(batch_size=16, epochs=8)
    before = finetune(base, train, train, recipe=recipe.but(learning_rate=1e-12, epochs=1))
    done = finetune(base, train, train, recipe=recipe)
    assert done.history[-1].loss < done.history[0].loss
    name = "cosine_spearman"
    assert done.scores[name].value > before.scores[name].value + 0.05


def test_pairs_with_a_number_train_an_embedder_where_pooling_is_given(model, tmp_path):
    train, dev = (as_kind(part, "regression") for part in both("similarity", tmp_path))
    recipe = RECIPE.but(epochs=1)
    assert finetune(model, train, dev, recipe=recipe).primary == "pearson"
    assert finetune(model, train, dev, recipe=recipe, pooling="cls").primary == "cosine_spearman"


def test_a_taggers_own_order_of_tags_is_kept(tmp_path):
    names = ["I-QUALITY", "B-FAULT", "I-FAULT", "O", "B-QUALITY"]
    labels = {"id2label": dict(enumerate(names)), "label2id": {n: i for i, n in enumerate(names)}}
    base = checkpoint(tmp_path / "tagger", head="token-classification", std=0.05, **labels)
    train, dev = both("tokens", tmp_path, n=100)
    done = finetune(base, train, dev, recipe=RECIPE.but(learning_rate=3e-3, epochs=6))
    assert list(done.model.config.id2label.values()) == names
    assert done.scores["entity_f1"].value > 0.8


def test_heads_and_data_that_do_not_fit_are_refused(model, tmp_path):
    tags, labels = tagged_rows(tmp_path), multilabel_rows(tmp_path)
    names = {0: "O", 1: "B-QUALITY", 2: "I-QUALITY"}
    known = {"id2label": names, "label2id": {name: index for index, name in names.items()}}
    tagger = checkpoint(tmp_path / "tagger", head="token-classification", **known)
    with pytest.raises(RequestError, match="has the tags B-FAULT, and the model's head has O, B-"):
        finetune(tagger, tags, tags, recipe=RECIPE)
    assert finetune(tagger, tags, tags, recipe=RECIPE.but(epochs=1), new_head=True)
    three = checkpoint(tmp_path / "three", head="classification", num_labels=3)
    with pytest.raises(RequestError, match=r"3 outputs .*reranking\) needs 1 or 2"):
        finetune(three, *both("reranking", tmp_path), recipe=RECIPE)
    with pytest.raises(RequestError, match=r"gives one label per text, and .* several"):
        finetune(three, labels, labels, recipe=RECIPE)
    for kind in ("similarity", "retrieval"):
        with pytest.raises(RequestError, match=r"classification head, and .* needs an embedder"):
            finetune(three, *both(kind, tmp_path), recipe=RECIPE)
    with pytest.raises(RequestError, match=r"pooling was given, but .* trains a head"):
        finetune(model, labels, labels, recipe=RECIPE, pooling="mean")


@pytest.mark.parametrize("kind", ["similarity", "retrieval"])
def test_batches_of_one_pair_have_nothing_to_compare(kind, model, tmp_path, monkeypatch):
    train, dev = both(kind, tmp_path)
    with pytest.raises(RequestError, match=r"batch_size must be 2 or more .* got 1"):
        finetune(model, train, dev, recipe=RECIPE.but(batch_size=1))
    with pytest.raises(DataError, match="has 1 pair to train on, expected 2 or more"):
        finetune(model, train.select(np.array([1])), dev, recipe=RECIPE)
    with pytest.raises(RequestError, match="freeze must leave something to train"):
        finetune(model, train, dev, recipe=RECIPE.but(freeze="encoder"))
    module = "microtome.training.finetune.finetuning.join_processes"
    monkeypatch.setattr(module, lambda: Processes(0, 2))
    with pytest.raises(RequestError, match="got 2 processes; train in one process"):
        finetune(model, train, dev, recipe=RECIPE)


def test_rows_without_labels_are_refused(model, tmp_path):
    train, dev = both("tokens", tmp_path)
    with pytest.raises(DataError, match="has no labels to train on"):
        finetune(model, replace(train, labelled=False), dev, recipe=RECIPE)


def test_the_command_says_what_is_wrong_in_a_line(model, tmp_path, capsys):
    retrieval_rows(tmp_path, n=12)
    data = ["--data", str(tmp_path / "beir-12-0"), "--out", str(tmp_path / "out")]
    assert run(["finetune", str(model), *data, "--batch-size", "1"]) == 2
    assert "batch_size must be 2 or more" in capsys.readouterr().err
    assert run(["finetune", str(model), *data, "--pooling", "max"]) == 2
    assert "pooling must be cls or mean, got 'max'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert run(["finetune", str(model), *data, "--epochs", "1", "--json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["primary"] == "ndcg_at_10"
    # The same documents for every query: right for some, never for all of them.
    assert set(document["constant_scores"]) == set(document["scores"])
    assert 0 < document["constant_scores"]["ndcg_at_10"] < 1
    assert "note: " in printed.err
    assert "the mean is taken" in printed.err
