"""Layers in another order give what the edited model gives in plain transformers."""

from __future__ import annotations

import numpy as np
import pytest

from microtome.edits import parse
from microtome.errors import RequestError
from microtome.observe import predict
from microtome.observe.layer_orders import predict_orders
from microtome.surgery import apply
from support.naive import naive_logits, padded, random_texts
from support.tiny import FAMILY_TYPES, N_LAYERS, tiny_model

LENGTHS = (9, 5, 14, 5, 2, 9, 1)
# Each is written down twice: as an edit, and as the order that it means for three layers.
ORDERS = {
    "keep(0-2)": (0, 1, 2),
    "remove(1)": (0, 2),
    "remove(2)": (0, 1),
    "keep(0)": (0,),
    "order(0,2,1,1)": (0, 2, 1, 1),
}


def test_the_tiny_models_have_the_layers_that_the_orders_speak_of():
    assert N_LAYERS == 3


@pytest.mark.parametrize("kind", [kind for kind in FAMILY_TYPES if kind != "albert"])
def test_every_order_equals_the_edited_model(kind):
    model = tiny_model(kind, "classification", num_labels=3)
    texts = random_texts(LENGTHS)
    batch = padded(texts, kind, to=20)
    logits = predict_orders(model, texts, list(ORDERS.values()), tokens_in_flight=30)
    whole = naive_logits(model, batch).numpy()
    for edit, ours in zip(ORDERS, logits, strict=True):
        theirs = naive_logits(apply(parse(edit), model), batch).numpy()
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
        if ORDERS[edit] != (0, 1, 2):
            assert np.abs(theirs - whole).max() > 1e-2, "the test model is too calm"


def test_a_shared_layer_may_be_applied_any_number_of_times():
    model = tiny_model("albert", "classification", num_labels=3)
    texts = random_texts(LENGTHS)
    (ours,) = predict_orders(model, texts, [(0, 0, 0, 0, 0)])
    theirs = naive_logits(apply(parse("extend(5)"), model), padded(texts, "albert")).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_answers_of_questions_are_by_token():
    model = tiny_model("bert", "question-answering")
    texts = random_texts(LENGTHS)
    whole, cut = predict_orders(model, texts, [(0, 1, 2), (0, 2)])
    np.testing.assert_allclose(whole, predict(model, texts), rtol=1e-5, atol=1e-5)
    edited = apply(parse("remove(1)"), model)
    np.testing.assert_allclose(cut, predict(edited, texts), rtol=1e-5, atol=1e-5)


def test_orders_that_end_where_others_go_on_are_both_given():
    model = tiny_model("bert", "classification", num_labels=3)
    texts = random_texts(LENGTHS)
    short, long, again = predict_orders(model, texts, [(0,), (0, 1, 2), (0,)])
    (alone,) = predict_orders(model, texts, [(0,)])
    np.testing.assert_allclose(short, alone, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(short, again)
    np.testing.assert_allclose(long, predict(model, texts), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("order", [(), (3,), (0, -1)])
def test_orders_of_layers_that_do_not_exist_are_refused(order):
    with pytest.raises(RequestError, match="expected orders of layers 0 to 2"):
        predict_orders(tiny_model("bert", "classification"), random_texts((3,)), [order])
