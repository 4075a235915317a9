"""Packed weights give the same products, in every family, and never those of other weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from microtome.families import adapt
from microtome.observe import forward, packed_weights
from microtome.observe.layer_orders import predict_orders
from microtome.observe.packed_weights import PackedWeights
from microtome.observe.packing import packed
from microtome.observe.sweeping import sweep
from microtome.observe.texts import fitted
from support.naive import random_texts
from support.tiny import FAMILY_TYPES, N_LAYERS, tiny_model

TEXTS = random_texts((9, 5, 14, 5, 2, 9, 1))
needs_onednn = pytest.mark.skipif(
    not packed_weights.is_worthwhile(), reason="nothing is packed on this CPU, or by this torch"
)


def last_states(model, *, dtype=torch.float32, within=None):
    """The states after the last layer, packed weights in use or not."""
    family = adapt(model.to(dtype))
    (chunk,) = packed(fitted(TEXTS, family.n_positions), tokens_in_flight=1000)
    with torch.inference_mode(), within or torch.inference_mode():
        return list(forward.depths(family, chunk))[-1]


@pytest.fixture
def products(monkeypatch):
    """The packed products that were computed."""
    made, real = [], packed_weights._product
    monkeypatch.setattr(packed_weights, "_product", lambda *a: made.append(1) or real(*a))
    return made


@needs_onednn
@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_every_product_of_a_block_is_packed_and_the_states_are_equal(kind, products):
    model = tiny_model(kind, "classification")
    plain = last_states(model)
    mode = PackedWeights(adapt(model), n_rows=100)
    assert not products
    torch.testing.assert_close(last_states(model, within=mode), plain, rtol=1e-5, atol=1e-5)
    layers = adapt(model).layers
    n_linear = sum(isinstance(part, nn.Linear) for layer in layers for part in layer.modules())
    assert len(products) >= n_linear >= 4 * N_LAYERS


@needs_onednn
def test_sweeps_and_cuts_use_them(products):
    model = tiny_model("bert", "classification")
    sweep(model, TEXTS, ["0.1"])
    n_swept = len(products)
    predict_orders(model, TEXTS, [(0, 2)])
    assert 0 < n_swept < len(products)


def test_weights_that_are_changed_between_two_sweeps_are_the_ones_that_answer():
    model, other = (tiny_model("bert", "classification", seed=seed) for seed in (0, 1))
    before = sweep(model, TEXTS, ["0.1"]).logits
    with torch.no_grad():
        for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
            mine.copy_(theirs)
    after = sweep(model, TEXTS, ["0.1"]).logits
    np.testing.assert_array_equal(after, sweep(other, TEXTS, ["0.1"]).logits)
    assert np.abs(after - before).max() > 1e-2


def test_other_types_are_computed_as_they_are(products):
    model = tiny_model("bert", "classification").double()
    mode = PackedWeights(adapt(model), n_rows=100)
    plain = last_states(model, dtype=torch.float64)
    assert torch.equal(last_states(model, dtype=torch.float64, within=mode), plain)
    assert not products
