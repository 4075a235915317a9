"""Encoded pairs give every family the very inputs that its tokenizer and model would agree on."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from microtome.observe.evaluation import encode_for
from microtome.observe.predicting import predict
from microtome.tasks import Row, Task
from support.rows_in_memory import dataset_from
from support.tiny import FAMILY_TYPES, tiny_model, tiny_tokenizer

ROWS = [Row("the cat sees", "a big dog runs", 1), Row("he was", "she is old and new", 0)]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("family", FAMILY_TYPES)
def test_a_pairs_logits_are_those_of_plain_transformers(family):
    task = Task(
        name="toy",
        kind="classification",
        labels=("no", "yes"),
        metrics=("accuracy",),
        summary="a toy",
    )
    model, tokenizer = tiny_model(family, "classification"), tiny_tokenizer(family)
    found = predict(model, encode_for(model, tokenizer, dataset_from(task, ROWS)))
    # This tokenizer is generic and doesn't know whose own tokenizers give segments.
    has_segments = family in ("bert", "albert", "electra", "nomic_bert")
    for row, logits in zip(ROWS, found, strict=True):
        inputs = tokenizer(
            row.text, row.pair, return_tensors="pt", return_token_type_ids=has_segments
        )
        with torch.no_grad():
            wanted = model(**inputs).logits[0].numpy()
        assert np.abs(logits - wanted).max() < 1e-4
