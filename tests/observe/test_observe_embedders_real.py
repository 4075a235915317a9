"""Real embedders and a real reranker: scores and numbers as their libraries give them."""

from __future__ import annotations

import csv

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from microtome.edits import parse
from microtome.models import job_of, load, load_tokenizer
from microtome.models.checkpoint import look_at
from microtome.observe import Texts, predict
from microtome.observe.embedding import embed
from microtome.surgery import apply, operate

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def pairs(shared_data):
    with (shared_data("data/glue/STS-B") / "dev.tsv").open(encoding="utf-8") as lines:
        rows = list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return [row[7] for row in rows], [row[8] for row in rows], [float(row[9]) for row in rows]


def cosine_spearman(model, tokenizer, pairs):
    first, second = (embed(model, tokenizer, texts).astype(np.float64) for texts in pairs[:2])
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return spearmanr((first * second).sum(1) / lengths, pairs[2]).statistic


def test_all_minilm_on_sts_b_whole_and_cut(pairs):
    """The published .867, and .738 of every other layer without healing."""
    model, tokenizer = load("minilm"), load_tokenizer("minilm")
    assert job_of(model) == "embedding"
    assert cosine_spearman(model, tokenizer, pairs) == pytest.approx(0.867, abs=5e-4)
    cut = apply(parse("keep(0,2,4)"), model)
    assert cosine_spearman(cut, tokenizer, pairs) == pytest.approx(0.738, abs=5e-4)


@torch.no_grad()
def test_bge_on_sts_b_is_as_with_plain_transformers(shared_data, pairs):
    """On 200 pairs: plain transformers takes minutes for all of them."""
    pairs = [column[:200] for column in pairs]
    folder = shared_data("models/bge-small-en")
    plain = AutoModel.from_pretrained(folder, dtype=torch.float32, add_pooling_layer=False).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows = []
    for texts in pairs[:2]:
        vectors = []
        for start in range(0, len(texts), 50):
            batch = tokenizer(texts[start : start + 50], padding=True, return_tensors="pt")
            vectors.append(plain(**batch).last_hidden_state[:, 0])
        rows.append(torch.nn.functional.normalize(torch.cat(vectors), dim=-1).double().numpy())
    expected = spearmanr((rows[0] * rows[1]).sum(1), pairs[2]).statistic
    ours = cosine_spearman(load(folder), load_tokenizer(folder), pairs)
    assert ours == pytest.approx(expected, abs=1e-6)


def test_a_cut_bge_loads_in_sentence_transformers(shared_data, tmp_path):
    folder = shared_data("models/bge-small-en")
    done = operate(folder, parse("keep(0-7)"), tmp_path / "bge-8")
    assert done.certificate.passed
    assert look_at(tmp_path / "bge-8").dtype == "float16"
    texts = ["A microtome cuts thin slices.", "Why?", "Bread and butter, and a long walk home."]
    options = {"dtype": torch.float32}
    theirs = SentenceTransformer(str(tmp_path / "bge-8"), device="cpu", model_kwargs=options)
    ours = embed(load(tmp_path / "bge-8"), load_tokenizer(tmp_path / "bge-8"), texts)
    assert np.allclose(ours, theirs.encode(texts), atol=1e-5)
    prompted = theirs.encode(texts, prompt_name="query")
    queries = embed(load(folder), load_tokenizer(folder), texts, prompt="query")
    cut = embed(load(tmp_path / "bge-8"), load_tokenizer(folder), texts, prompt="query")
    assert np.allclose(cut, prompted, atol=1e-5)
    assert np.abs(cut - queries).max() > 1e-2


@torch.no_grad()
def test_a_reranker_of_two_logits_is_as_in_transformers(shared_data):
    folder = shared_data("models/mini-reranker")
    with (shared_data("data/reranking") / "dev.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))[:40]
    plain = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = load_tokenizer(folder)
    texts = ([row["qtext"] for row in rows], [row["atext"] for row in rows])
    padded = tokenizer(
        *texts, padding=True, truncation=True, return_tensors="pt", return_token_type_ids=True
    )
    encoded = tokenizer(*texts, truncation=True, return_token_type_ids=True)
    ours = predict(load(folder), Texts.of(encoded["input_ids"], segments=encoded["token_type_ids"]))
    assert ours.shape == (40, 2)
    assert np.allclose(ours, plain(**padded).logits.numpy(), atol=1e-4)
