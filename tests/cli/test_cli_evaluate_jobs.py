"""``microtome evaluate`` on embedders, rerankers and taggers, against plain transformers."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from transformers import AutoModel, AutoModelForSequenceClassification

from microtome.cli import run
from support.sentence_folders import sentence_folder, write_json
from support.tiny import WORDS, save_tiny, tiny_tokenizer


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))


def sentence(number, length=6):
    return " ".join(WORDS[(number * 5 + step * (number % 3 + 1)) % 40] for step in range(length))


def evaluated(capsys, *arguments):
    assert run(["evaluate", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments):
    assert run(["evaluate", *map(str, arguments)]) == 2
    return capsys.readouterr().err.strip().splitlines()[-1]


@torch.no_grad()
def vectors(folder, texts, *, max_length=40, prompt="", skipped=0, normal=True):
    """Means of the last states, text by text."""
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), tiny_tokenizer("bert")
    rows = []
    for text in texts:
        batch = tokenizer(
            prompt + text, truncation=True, max_length=max_length, return_tensors="pt"
        )
        rows.append(model(**batch).last_hidden_state[0, skipped:].mean(0))
    found = torch.stack(rows).double()
    return (torch.nn.functional.normalize(found, dim=-1) if normal else found).numpy()


@pytest.fixture
def pairs(tmp_path):
    """Twenty pairs with a number."""
    rows = [(sentence(i, 12), sentence(3 * i + 1, 9), (i * 7 % 11) / 2) for i in range(20)]
    with (tmp_path / "pairs.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("text", "pair", "label"), *rows])
    return tmp_path / "pairs.csv", rows


def test_pairs_with_a_number_are_similarity_for_an_embedder(tmp_path, pairs, capsys):
    file, rows = pairs
    folder = sentence_folder(tmp_path / "model", max_seq_length=8)
    document = evaluated(capsys, folder, "--data", file)
    assert document["primary"] == "cosine_spearman"
    left, right = (vectors(folder, [row[i] for row in rows], max_length=8) for i in (0, 1))
    expected = spearmanr((left * right).sum(1), [row[2] for row in rows]).statistic
    assert document["scores"]["cosine_spearman"]["value"] == pytest.approx(expected, abs=1e-6)
    whole = evaluated(capsys, folder, "--data", file, "--max-length", 30)
    assert whole["scores"] != document["scores"]  # the folder's length gives way to an asked one


def test_pairs_with_a_number_are_regression_for_one_output(tmp_path, pairs, capsys):
    model = save_tiny(tmp_path / "one", "bert", "classification", with_tokenizer=True, num_labels=1)
    document = evaluated(capsys, model, "--data", pairs[0], "--kind", "similarity")
    assert document["primary"] == "pearson"


def test_a_bare_encoder_embeds_with_pooling(tmp_path, pairs, capsys):
    file, rows = pairs
    bare = save_tiny(tmp_path / "bare", "bert", "none", with_tokenizer=True)
    assert "needs" in refused(capsys, bare, "--data", file)
    document = evaluated(capsys, bare, "--data", file, "--pooling", "mean")
    left, right = (vectors(bare, [row[i] for row in rows], max_length=60) for i in (0, 1))
    expected = spearmanr((left * right).sum(1), [row[2] for row in rows]).statistic
    assert document["scores"]["cosine_spearman"]["value"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("include_prompt", [True, False])
def test_a_named_prompt_is_before_both_texts(tmp_path, pairs, capsys, include_prompt):
    file, rows = pairs
    prompts = {"match": "a big river : ", "other": "no "}
    folder = sentence_folder(tmp_path / "model", prompts=prompts, include_prompt=include_prompt)
    document = evaluated(capsys, folder, "--data", file, "--prompt", "match")
    skipped = 0 if include_prompt else len(tiny_tokenizer()(prompts["match"])["input_ids"]) - 1
    left, right = (
        vectors(folder, [row[i] for row in rows], prompt=prompts["match"], skipped=skipped)
        for i in (0, 1)
    )
    expected = spearmanr((left * right).sum(1), [row[2] for row in rows]).statistic
    assert document["scores"]["cosine_spearman"]["value"] == pytest.approx(expected, abs=1e-6)
    assert "no prompt 'none'" in refused(capsys, folder, "--data", file, "--prompt", "none")


@pytest.fixture
def searches(tmp_path):
    """A BEIR folder: 12 documents, 5 queries with two relevant documents each."""
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    documents = [sentence(i, 9) for i in range(12)]
    queries = [sentence(2 * i + 1, 4) for i in range(5)]
    for name, texts in (("corpus", documents), ("queries", queries)):
        lines = [json.dumps({"_id": f"{name[0]}{i}", "text": t}) for i, t in enumerate(texts)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    relevant = {i: (i, (i * 5 + 3) % 12) for i in range(5)}
    lines = [f"q{query}\tc{document}\t1" for query in relevant for document in relevant[query]]
    header = "query-id\tcorpus-id\tscore"
    (folder / "qrels" / "test.tsv").write_text("\n".join([header, *lines]) + "\n")
    return folder, queries, documents, relevant


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_a_search_has_its_prompts_and_the_folders_similarity(
    tmp_path, searches, capsys, similarity
):
    data, queries, documents, relevant = searches
    prompts = {"query": "she likes ", "passage": "the old house : "}
    folder = sentence_folder(tmp_path / "model", prompts=prompts, then=())
    settings = {"prompts": prompts, "similarity_fn_name": similarity}
    write_json(folder / "config_sentence_transformers.json", settings)
    document = evaluated(capsys, folder, "--data", data, "--split", "test")
    normal = similarity == "cosine"
    left = vectors(folder, queries, prompt=prompts["query"], normal=normal)
    right = vectors(folder, documents, prompt=prompts["passage"], normal=normal)
    order = (-(left @ right.T)).argsort(1)
    values = []
    for query, found in enumerate(order):
        gains = [1 / math.log2(rank + 2) for rank in range(10) if found[rank] in relevant[query]]
        values.append(sum(gains) / (1 + 1 / math.log2(3)))
    score = document["scores"]["ndcg_at_10"]
    assert score["value"] == pytest.approx(np.mean(values), abs=1e-9)
    assert score["n"] == 5


def test_a_similarity_that_is_not_measured_is_refused(tmp_path, searches, capsys):
    folder = sentence_folder(tmp_path / "model", then=())
    settings = {"prompts": {}, "similarity_fn_name": "manhattan"}
    write_json(folder / "config_sentence_transformers.json", settings)
    line = refused(capsys, folder, "--data", searches[0], "--split", "test")
    assert "by manhattan" in line


@pytest.fixture
def passages(tmp_path):
    """Six queries with four passages each, the relevant one in another place each time."""
    rows = [
        (f"{WORDS[query]} likes", sentence(5 * query + place), int(place == query % 4))
        for query in range(6)
        for place in range(4)
    ]
    with (tmp_path / "passages.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("text", "pair", "label"), *rows])
    return tmp_path / "passages.csv", rows


@pytest.mark.parametrize("n_outputs", [1, 2])
@torch.no_grad()
def test_a_reranker_is_scored_by_query(tmp_path, passages, capsys, n_outputs):
    file, rows = passages
    folder = save_tiny(
        tmp_path / "model", "bert", "classification", with_tokenizer=True, num_labels=n_outputs
    )
    document = evaluated(capsys, folder, "--data", file, "--kind", "reranking")
    plain = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer, relevance = tiny_tokenizer("bert"), []
    for text, pair, _ in rows:
        encoded = tokenizer(text, pair, return_token_type_ids=True, return_tensors="pt")
        logits = plain(**encoded).logits[0]
        relevance.append(float(logits[0] if n_outputs == 1 else logits[1] - logits[0]))
    by_query = np.array(relevance).reshape(6, 4)
    ranks = [1 + sum(by_query[query] > by_query[query, query % 4]) for query in range(6)]
    assert document["scores"]["map"]["value"] == pytest.approx(np.mean(1 / np.array(ranks)))
    assert document["scores"]["map"]["n"] == 6


def test_what_does_not_fit_is_one_line(tmp_path, passages, searches, capsys):
    embedder = sentence_folder(tmp_path / "embedder")
    heads = {
        name: save_tiny(tmp_path / name, "bert", head, with_tokenizer=True, **config)
        for name, head, config in (
            ("three", "classification", {"num_labels": 3}),
            ("tagger", "token-classification", {"num_labels": 3}),
            ("topics", "classification", {"problem_type": "multi_label_classification"}),
        )
    }
    file, reranking = passages[0], ("--kind", "reranking")
    assert "the model is an embedder" in refused(capsys, embedder, "--data", file)
    assert "3 outputs" in refused(capsys, heads["three"], "--data", file, *reranking)
    assert "has token-classification" in refused(capsys, heads["tagger"], "--data", file)
    assert "several labels per text" in refused(capsys, heads["topics"], "--data", file)
    search = refused(capsys, heads["three"], "--data", searches[0], "--split", "test")
    assert "needs an embedder" in search
    prompted = refused(capsys, heads["three"], "--data", file, "--prompt", "query", *reranking)
    assert "prompt" in prompted
