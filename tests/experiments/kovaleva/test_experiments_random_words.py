"""Words marked at random, through the experiments themselves: no head is found for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from microtome import load, load_tokenizer
from microtome.experiments.kovaleva.linguistic_features.measure import feature_rows, received_by
from microtome.experiments.kovaleva.token_links.measure import link_rows
from microtome.tasks import DataSpec, open_data
from microtome.tasks.annotation.features import parse_feature
from microtome.tasks.annotation.passages import (
    Passage,
    Placed,
    cut_into_words,
    encode_passages,
    gold_passages,
)

N_FEATURES = 80
N_TEXTS = 20


@pytest.fixture(scope="module")
def nano():
    return load("nano-bert"), load_tokenizer("nano-bert")


def marked_at_random(texts, rng):
    """Every feature marks one word of every text; a word's features are in its XPOS: ,3,17,."""
    passages = []
    for text in texts:
        sentence = cut_into_words(text)
        marked = rng.integers(len(sentence.words), size=N_FEATURES)
        words = [
            replace(word, xpos=f",{','.join(map(str, np.flatnonzero(marked == place)))},")
            for place, word in enumerate(sentence.words)
        ]
        passages.append(Passage(text, None, (Placed(replace(sentence, words=tuple(words))),)))
    return passages


def test_random_features_are_hardly_ever_found(nano):
    """80 of them on 20 texts; a test of 5 % finds more than the bound in 1 of 1,000 cases."""
    model, tokenizer = nano
    rows = open_data(DataSpec("micro-sentiment", split="dev")).limit(400).rows()
    texts = [row.text for row in rows][::20]
    assert len(texts) == N_TEXTS
    passages = marked_at_random(texts, np.random.default_rng(0))
    encoded = encode_passages(passages, tokenizer, max_length=60, segments=True)
    features = tuple(parse_feature(f"random {i}=xpos=*,{i},*") for i in range(N_FEATURES))
    received = {"pretrained": received_by(model, encoded, features, mode="paper")}
    least: dict[str, float] = {}
    for row in feature_rows(received, encoded):
        if row["feature"].startswith("random"):
            least[row["feature"]] = min(least.get(row["feature"], 1.0), row["p_maxt"])
    assert len(least) == N_FEATURES
    found = sum(p <= 0.05 for p in least.values())
    assert found <= binom.ppf(0.999, N_FEATURES, 0.05)


def test_heads_are_found_for_attending_never_for_looking_away(nano):
    model, tokenizer = nano
    dataset = open_data(DataSpec("micro-sentiment", split="dev")).limit(80)
    texts = encode_passages(list(gold_passages(dataset)), tokenizer, max_length=60, segments=True)
    features = tuple(parse_feature(f"{name}=upos={name}") for name in ("NOUN", "DET", "VERB"))
    received = {"pretrained": received_by(model, texts, features, mode="paper")}
    rows = [*feature_rows(received, texts), *link_rows(model, texts, ["verb-subject"])]
    found = [row for row in rows if row["p_maxt"] <= 0.05]
    assert {row.get("feature") for row in found} >= {"NOUN", None}  # None: links
    assert all(row["excess"] > 0 for row in found)
