"""A masked LM's answers equal those of plain transformers, with heads off and layers gone too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from microtome import parse
from microtome.errors import RequestError
from microtome.observe import predict, sweep
from microtome.observe.layer_orders import predict_orders
from support.naive import naive_logits, padded, random_texts
from support.tiny import FAMILY_TYPES, N_LAYERS, VOCABULARY, tiny_model

LENGTHS = (9, 5, 14, 5, 4, 9, 3)
MASK = 4


def masked_texts(seed=0):
    """Every third token hidden, but none of the last text."""
    texts = random_texts(LENGTHS, seed=seed)
    targets = np.where(np.arange(len(texts.ids)) % 3 == 1, texts.ids, -1)
    targets[texts.offsets[-2] :] = -1
    return replace(texts, ids=np.where(targets >= 0, MASK, texts.ids), targets=targets)


def by_hand(logits, texts):
    """(n, 5) from the logits (B, L, V) of transformers, token by token."""
    rows = []
    for text, (start, stop) in enumerate(zip(texts.offsets, texts.offsets[1:], strict=False)):
        places = [i for i in range(stop - start) if texts.targets[start + i] >= 0]
        targets = [int(texts.targets[start + i]) for i in places]
        scores = [logits[text, i].log_softmax(-1) for i in places]
        guesses = [int(one.argmax()) for one in scores]
        right = sum(guess == target for guess, target in zip(guesses, targets, strict=True))
        loss = -sum(float(one[target]) for one, target in zip(scores, targets, strict=True))
        rows.append((len(places), right, loss, min(guesses, default=0), max(guesses, default=0)))
    return np.array(rows)


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_answers_equal_those_of_transformers(kind):
    model, texts = tiny_model(kind), masked_texts()
    theirs = by_hand(naive_logits(model, padded(texts, kind)), texts)
    ours = predict(model, texts, tokens_in_flight=20)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    assert theirs[:, 2].sum() > 1  # nats
    assert (theirs[-1] == 0).all()


@pytest.mark.parametrize("how", ["uniform", "zero"])
@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_a_sweep_of_heads_equals_the_naive_loop(kind, how):
    model, texts = tiny_model(kind), masked_texts(seed=1)
    batch = padded(texts, kind)
    ours = sweep(model, texts, how=how, tokens_in_flight=60)
    base = by_hand(naive_logits(model, batch), texts)
    np.testing.assert_allclose(ours.baseline, base, rtol=1e-4, atol=1e-4)
    effects = []
    for one, answers in zip(ours.targets, ours.logits, strict=True):
        heads = {(head.layer, head.head) for head in one.heads}
        theirs = by_hand(naive_logits(model, batch, heads, how), texts)
        np.testing.assert_allclose(answers, theirs, rtol=1e-4, atol=1e-4)
        effects.append(np.abs(theirs[:, 2] - base[:, 2]).max())
    assert np.median(effects) > 1e-2, "the test model is too calm to show anything"


@pytest.mark.parametrize("kind", ["bert", "distilbert", "modernbert", "nomic_bert", "eurobert"])
def test_layers_in_another_order_answer_as_the_edited_model(kind):
    model, texts = tiny_model(kind), masked_texts(seed=2)
    orders = [tuple(range(N_LAYERS)), tuple(range(N_LAYERS - 1))]
    ours = predict_orders(model, texts, orders, tokens_in_flight=30)
    np.testing.assert_allclose(ours[0], predict(model, texts), rtol=1e-4, atol=1e-4)
    edited = parse(f"remove({N_LAYERS - 1})")(model)
    np.testing.assert_allclose(ours[1], predict(edited, texts), rtol=1e-4, atol=1e-4)


def test_texts_longer_than_the_position_table_lose_their_last_masks():
    model = tiny_model("bert", max_position_embeddings=8)
    texts = masked_texts()
    answers = predict(model, texts)
    assert np.isfinite(answers).all()
    assert answers[2, 0] == sum(texts.targets[texts.offsets[2] :][:7] >= 0)


def test_a_masked_lm_without_masks_has_no_answer():
    model = tiny_model("bert")
    with pytest.raises(RequestError, match="masked LM answers texts with masks"):
        predict(model, random_texts(LENGTHS))
    with pytest.raises(RequestError, match="no head"):
        predict(tiny_model("bert", "none"), masked_texts())


def test_the_vocabulary_is_read_at_masked_tokens_only():
    model, texts = tiny_model("bert"), masked_texts()
    seen = []
    model.cls.predictions.decoder.register_forward_hook(lambda _, inputs, out: seen.append(out))
    predict(model, texts)
    assert {tuple(out.shape[1:]) for out in seen} == {(VOCABULARY,)}
    assert sum(len(out) for out in seen) == (texts.targets >= 0).sum()
    assert all(isinstance(out, torch.Tensor) for out in seen)
