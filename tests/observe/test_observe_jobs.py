"""Taggers, multi-label classifiers and embedders in the packed engine, in every family."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from microtome.edits import parse
from microtome.families.embedder import Embedder, Normalize, attach_embedder
from microtome.models.heads import job_of
from microtome.observe import Texts, predict, sweep
from microtome.observe.layer_orders import predict_orders
from microtome.surgery import apply
from support.tiny import FAMILY_TYPES, tiny_batch, tiny_model

LENGTHS = (9, 5, 7)


def texts_of(family):
    batch = tiny_batch(family, lengths=LENGTHS)
    return Texts.of([row[:n].tolist() for row, n in zip(batch["input_ids"], LENGTHS, strict=True)])


@torch.no_grad()
def padded(model, family):
    """Plain transformers on a padded batch: one row per real token."""
    batch = tiny_batch(family, lengths=LENGTHS)
    logits = model(**batch)[0]
    return logits[batch["attention_mask"].bool()].numpy()


@pytest.mark.parametrize("family", FAMILY_TYPES)
def test_a_tagger_answers_every_token_as_in_transformers(family):
    model = tiny_model(family, "token-classification", num_labels=5)
    assert job_of(model) == "tokens"
    assert np.allclose(predict(model, texts_of(family)), padded(model, family), atol=1e-4)


@pytest.mark.parametrize("family", FAMILY_TYPES)
def test_a_multi_label_classifier_is_a_classifier_with_another_job(family):
    labels = {"num_labels": 4, "problem_type": "multi_label_classification"}
    model = tiny_model(family, "classification", **labels)
    assert job_of(model) == "multilabel"
    with torch.no_grad():
        expected = model(**tiny_batch(family, lengths=LENGTHS)).logits.numpy()
    assert np.allclose(predict(model, texts_of(family)), expected, atol=1e-4)


def test_one_output_is_a_regression():
    assert job_of(tiny_model("bert", "classification", num_labels=1)) == "regression"


@pytest.mark.parametrize("family", FAMILY_TYPES)
@pytest.mark.parametrize("head", ["cls", "mean", "tokens"])
def test_sweeps_and_orders_of_layers_are_those_of_edited_models(family, head):
    if head == "tokens":
        model = tiny_model(family, "token-classification", num_labels=5)
    else:
        model = attach_embedder(tiny_model(family, "none"), Embedder((head,), (Normalize(),)))
    texts = texts_of(family)
    off = ["*.2"] if family == "albert" else ["1.2", "2.*"]
    swept = sweep(model, texts, off, how="zero")
    assert np.allclose(swept.baseline, predict(model, texts), atol=1e-5)
    for target, answers in zip(off, swept.logits, strict=True):
        edited = apply(parse(f"disable({target}, how=zero)"), model)
        assert np.allclose(answers, predict(edited, texts), atol=1e-4)
        assert np.abs(answers - swept.baseline).max() > 1e-2
    shorter = apply(parse("remove(2)"), model)
    orders = predict_orders(model, texts, [(0, 1, 2), (0, 1)])
    assert np.allclose(orders[0], swept.baseline, atol=1e-5)
    assert np.allclose(orders[1], predict(shorter, texts), atol=1e-4)
