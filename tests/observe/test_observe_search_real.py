"""A real embedder on a real search and a real reranker on real passages, query by query."""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from microtome.models import load, load_tokenizer
from microtome.observe.evaluation import evaluate
from microtome.tasks import DataSpec, open_data

pytestmark = pytest.mark.real

LENGTH = 32  # tokens: the documents whole would take ten minutes
N_QUERIES, N_DOCUMENTS = 20, 200
N_QUESTIONS = 30


def lines(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@torch.no_grad()
def vectors(model, tokenizer, texts):
    """[CLS] of the last layer, at length 1, in padded batches."""
    order, found = np.argsort([len(text) for text in texts]), {}
    for start in range(0, len(texts), 32):
        part = order[start : start + 32]
        batch = tokenizer(
            [texts[i] for i in part], padding=True, truncation=True, max_length=LENGTH,
            return_tensors="pt",
        )  # fmt: skip
        found |= dict(zip(part.tolist(), model(**batch).last_hidden_state[:, 0], strict=True))
    rows = torch.stack([found[i] for i in range(len(texts))])
    return torch.nn.functional.normalize(rows, dim=-1).double().numpy()


def part_of(data, folder):
    """Some queries with all that is relevant to them, among other documents."""
    header, *judged = (data / "qrels" / "test.tsv").read_text().splitlines()
    queries = lines(data / "queries.jsonl")[:N_QUERIES]
    asked = {query["_id"] for query in queries}
    judged = [line for line in judged if line.split("\t")[0] in asked]
    needed = {line.split("\t")[1] for line in judged}
    documents = lines(data / "corpus.jsonl")
    n_others = N_DOCUMENTS - len(needed)
    others = [one["_id"] for one in documents if one["_id"] not in needed][:n_others]
    documents = [one for one in documents if one["_id"] in needed.union(others)]
    (folder / "qrels").mkdir(parents=True)
    for name, rows in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "qrels" / "test.tsv").write_text("\n".join([header, *judged]))
    return folder


def test_cranfield_is_read_whole(shared_data):
    dataset = open_data(DataSpec(path=shared_data("data/retrieval/cranfield")))
    assert (len(dataset), len(dataset.corpus.positions)) == (225, 1400)


def test_ndcg_of_every_query_on_a_part_of_cranfield(shared_data, tmp_path):
    folder = shared_data("models/bge-small-en")
    data = part_of(shared_data("data/retrieval/cranfield"), tmp_path / "part")
    documents, queries = lines(data / "corpus.jsonl"), lines(data / "queries.jsonl")
    relevant = defaultdict(dict)
    for line in (data / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        query, document, grade = line.split("\t")
        relevant[query][document] = int(grade)
    plain = AutoModel.from_pretrained(folder, dtype=torch.float32, add_pooling_layer=False).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    prompt = json.loads((folder / "config_sentence_transformers.json").read_text())["prompts"]
    titled = [f"{one.get('title', '')} {one['text']}".strip() for one in documents]
    left = vectors(plain, tokenizer, [prompt["query"] + one["text"] for one in queries])
    right = vectors(plain, tokenizer, titled)
    expected = []
    for query, scores in zip(queries, left @ right.T, strict=True):
        best = np.argsort(-scores, kind="stable")[:10]
        grades = relevant[query["_id"]]
        gains = [grades.get(documents[place]["_id"], 0) for place in best]
        ideal = sorted(grades.values(), reverse=True)[:10]
        dcg, most = (
            sum(gain / math.log2(rank + 2) for rank, gain in enumerate(each))
            for each in (gains, ideal)
        )
        expected.append(dcg / most)
    dataset = open_data(DataSpec(path=data))
    assert (len(dataset), len(dataset.corpus.positions)) == (N_QUERIES, N_DOCUMENTS)
    found = evaluate(load(folder), load_tokenizer(folder), dataset, max_length=LENGTH)
    assert np.allclose(found.outcomes["ndcg_at_10"], expected, atol=1e-9)
    assert found.scores["ndcg_at_10"].value == pytest.approx(np.mean(expected), abs=1e-9)


@torch.no_grad()
def test_map_and_mrr_of_a_reranker(shared_data, tmp_path):
    """Two logits: the second minus the first is relevance; questions without an answer are out."""
    folder, file = shared_data("models/mini-reranker"), tmp_path / "some.csv"
    with (shared_data("data/reranking") / "dev.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    some = list(dict.fromkeys(row["qtext"] for row in rows))[:N_QUESTIONS]
    rows = [row for row in rows if row["qtext"] in some]
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    plain = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = load_tokenizer(folder)
    by_question = defaultdict(list)
    for row in rows:
        encoded = tokenizer(
            row["qtext"], row["atext"], truncation=True, max_length=128, return_tensors="pt",
            return_token_type_ids=True,
        )  # fmt: skip
        first, second = plain(**encoded).logits[0].double().tolist()
        by_question[row["qtext"]].append((second - first, int(row["label"])))
    precisions, reciprocals = [], []
    for passages in by_question.values():
        ranked = [label for _, label in sorted(passages, key=lambda passage: -passage[0])]
        places = [rank for rank, label in enumerate(ranked, start=1) if label]
        if places:
            precisions.append(np.mean([n / rank for n, rank in enumerate(places, start=1)]))
            reciprocals.append(1 / places[0] if places[0] <= 10 else 0)
    assert 0 < len(precisions) < N_QUESTIONS, "some have no answer"
    spec = DataSpec(path=file, kind="reranking", text_column="qtext", pair_column="atext")
    found = evaluate(load(folder), tokenizer, open_data(spec))
    assert found.scores["map"].n == len(precisions)
    assert found.scores["map"].value == pytest.approx(np.mean(precisions), abs=1e-6)
    assert found.scores["mrr_at_10"].value == pytest.approx(np.mean(reciprocals), abs=1e-6)
