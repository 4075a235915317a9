"""oneDNN's products give the same answers and gradients, in every family."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from microtome.families import adapt
from microtome.observe import HeadMeans, decode, forward, predict, products, reductions, states
from microtome.observe.attention import stream
from microtome.observe.layer_orders import predict_orders
from microtome.observe.packing import packed
from microtome.observe.products import FastProducts
from microtome.observe.sweeping import sweep
from microtome.observe.texts import fitted
from microtome.observe.vocabulary import Vocabulary
from support.naive import random_texts
from support.tiny import FAMILY_TYPES, N_LAYERS, tiny_model

TEXTS = random_texts((9, 5, 14, 5, 2, 9, 1))
needs_onednn = pytest.mark.skipif(
    not products.is_worthwhile(), reason="oneDNN isn't used on this CPU, or by this torch"
)


@pytest.fixture
def made(monkeypatch):
    """The shapes that oneDNN multiplied; small products are its own here, too."""
    shapes, real = [], products._product
    monkeypatch.setattr(products, "FEWEST_MULTIPLICATIONS", 1)
    monkeypatch.setattr(
        products, "_product", lambda *given: shapes.append(given[0].shape) or real(*given)
    )
    return shapes


def last_states(model):
    """The states after the last layer."""
    family = adapt(model)
    (chunk,) = packed(fitted(TEXTS, family.n_positions), tokens_in_flight=1000)
    with torch.inference_mode():
        return list(forward.depths(family, chunk))[-1]


@needs_onednn
@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_every_product_of_a_block_is_fast_and_the_states_are_equal(kind, made):
    model = tiny_model(kind, "classification")
    plain = last_states(model)
    assert not made
    with FastProducts():
        fast = last_states(model)
    torch.testing.assert_close(fast, plain, rtol=1e-5, atol=1e-5)
    layers = adapt(model).layers
    n_linear = sum(isinstance(part, nn.Linear) for layer in layers for part in layer.modules())
    assert len(made) >= n_linear >= 4 * N_LAYERS


@needs_onednn
@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_gradients_are_equal(kind, made):
    model = tiny_model(kind, "classification")
    ids = torch.tensor([[5, 6, 7, 8], [8, 7, 6, 5]])

    def gradients():
        model.zero_grad()
        model(ids, labels=torch.tensor([0, 1])).loss.backward()
        return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}

    plain = gradients()
    assert not made
    with FastProducts():
        fast = gradients()
    assert made
    assert fast.keys() == plain.keys()
    for name, gradient in plain.items():
        torch.testing.assert_close(fast[name], gradient, rtol=1e-4, atol=1e-5, msg=name)


WORKS = {
    "sweep": lambda model: sweep(model, TEXTS, ["0.1"]),
    "cuts": lambda model: predict_orders(model, TEXTS, [(0, 2)]),
    "predict": lambda model: predict(model, TEXTS),
    "states": lambda model: list(states(model, TEXTS)),
    "attention": lambda model: stream(model, TEXTS, [HeadMeans(reductions.entropy)]),
    "decoding": lambda model: decode(
        model, TEXTS, Vocabulary.of([f"t{i}" for i in range(100)], special_ids=[0]),
        readout="tied",
    ),
}  # fmt: skip


@needs_onednn
@pytest.mark.parametrize("work", WORKS)
def test_the_engine_multiplies_fast(work, made):
    WORKS[work](tiny_model("bert", "classification"))
    assert made
    n_made = len(made)
    functional.linear(torch.ones(100, 100), torch.ones(100, 100))
    assert len(made) == n_made  # and leaves everybody else's products alone


@needs_onednn
def test_small_products_are_left_to_torch(monkeypatch, made):
    monkeypatch.setattr(products, "FEWEST_MULTIPLICATIONS", 10 * 20 * 30)
    with FastProducts():
        functional.linear(torch.ones(9, 20), torch.ones(30, 20))
        assert not made
        functional.linear(torch.ones(10, 20), torch.ones(30, 20))
    assert len(made) == 1


@needs_onednn
def test_other_types_are_computed_as_they_are(made):
    given, weight = torch.ones(4, 5, dtype=torch.float64), torch.ones(6, 5, dtype=torch.float64)
    with FastProducts():
        assert torch.equal(
            functional.linear(given, weight), torch.full_like(given, 5)[:, :1].expand(4, 6)
        )
    assert not made


@needs_onednn
def test_whatever_the_strides(made):
    torch.manual_seed(0)
    wide = torch.randn(40, 2, 60)
    given = {
        "rows": wide[:, 0, ::2],
        "columns": wide[:30, 0, :40].mT,
        "expanded": wide[:1, 0, :30].expand(40, 30),
        "batch": wide.transpose(0, 1)[..., :30],
        "one": wide[0, 0, :30],
    }
    weights = [wide[:, 1, 30:], wide[:30, 1, :40].mT]
    biases = [None, wide[0, 1, :40], wide[:, 0, 0]]
    for name, rows in given.items():
        for weight in weights:
            for bias in biases:
                with FastProducts():
                    fast = functional.linear(rows, weight, bias)
                wanted = functional.linear(
                    *(x if x is None else x.double() for x in (rows, weight, bias))
                )
                np.testing.assert_allclose(fast, wanted, atol=1e-4, err_msg=name)
    assert len(made) == len(given) * len(weights) * len(biases)
