"""The engine gives what transformers gives on a padded batch, for every family and head."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from microtome.errors import DataError, RequestError
from microtome.families import adapt
from microtome.observe import Texts, forward, predict, states
from microtome.observe.packing import packed
from support.naive import on_real, padded, random_texts
from support.tiny import ANSWERING, FAMILY_TYPES, N_POSITIONS, tiny_model

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
UNLIKE = (9, 5, 30, 2, 5, 1, 17, 9, 3, 30)


def texts_for(model, lengths=UNLIKE, seed=0):
    family = adapt(model)
    return random_texts(lengths, seed=seed, segments=family.uses_segments)


@pytest.mark.parametrize("tokens_in_flight", [1, 16, 1000])
@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_classification_logits_are_those_of_a_padded_batch_in_input_order(kind, tokens_in_flight):
    model = tiny_model(kind, "classification", num_labels=3)
    texts = texts_for(model)
    with torch.no_grad():
        theirs = model(**padded(texts, kind)).logits.numpy()
    ours = predict(model, texts, tokens_in_flight=tokens_in_flight)
    np.testing.assert_allclose(ours, theirs, **CLOSE)
    assert np.abs(theirs - theirs[0]).max() > 0.1  # the texts do differ


def test_mean_pooled_classifiers_are_right():
    model = tiny_model("modernbert", "classification", classifier_pooling="mean")
    texts = texts_for(model)
    with torch.no_grad():
        theirs = model(**padded(texts, "modernbert")).logits.numpy()
    np.testing.assert_allclose(predict(model, texts, tokens_in_flight=32), theirs, **CLOSE)


def test_regression_is_a_classifier_with_one_label():
    model = tiny_model("bert", "classification", num_labels=1)
    texts = texts_for(model)
    with torch.no_grad():
        theirs = model(**padded(texts)).logits.numpy()
    assert theirs.shape == (len(UNLIKE), 1)
    np.testing.assert_allclose(predict(model, texts), theirs, **CLOSE)


@pytest.mark.parametrize("kind", ANSWERING)
def test_answer_logits_are_those_of_a_padded_batch(kind):
    model = tiny_model(kind, "question-answering")
    texts = texts_for(model)
    batch = padded(texts, kind)
    with torch.no_grad():
        out = model(**batch)
    theirs = on_real(torch.stack([out.start_logits, out.end_logits], -1), batch)
    np.testing.assert_allclose(predict(model, texts, tokens_in_flight=40), theirs.numpy(), **CLOSE)


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_states_of_every_depth_are_the_hidden_states(kind):
    model = tiny_model(kind, "none")
    family = adapt(model)
    texts = texts_for(model)
    batch = padded(texts, kind)
    with torch.no_grad():
        hidden = model(**batch, output_hidden_states=True).hidden_states
    n_seen = 0
    for chunk, depths in states(model, texts, tokens_in_flight=40):
        assert len(depths) == family.shape.n_layers + 1
        depths[-1] = family.final_norm(depths[-1])  # as transformers does to the last one
        for ours, theirs in zip(depths, hidden, strict=True):
            wanted = on_real(theirs, batch)[torch.from_numpy(chunk.tokens)]
            torch.testing.assert_close(ours, wanted, **CLOSE)
        n_seen += chunk.n_tokens
    assert n_seen == sum(UNLIKE)


def test_states_can_be_trained_on():
    model = tiny_model("bert", "none")
    probe = torch.nn.Linear(model.config.hidden_size, 2)
    _, depths = next(states(model, random_texts((4, 6))))
    probe(depths[1]).sum().backward()
    assert probe.weight.grad.abs().max() > 0


@pytest.mark.parametrize("kind", ["bert", "albert", "modernbert"])
def test_going_on_from_any_depth_gives_the_same_logits(kind):
    model = tiny_model(kind, "classification")
    family = adapt(model)
    texts = texts_for(model)
    whole = predict(model, texts, tokens_in_flight=200)
    with torch.inference_mode():
        (chunk,) = packed(texts, tokens_in_flight=200)
        for depth, own in enumerate(forward.depths(family, chunk)):
            logits = forward.finished(family, own, chunk, start=depth).numpy()
            np.testing.assert_allclose(logits, whole[chunk.texts], **CLOSE)


def test_half_precision_models_are_computed_in_float32_on_a_cpu_and_left_as_they_are():
    model = tiny_model("bert", "classification").half()
    texts = random_texts((7, 4))
    ours = predict(model, texts)
    assert model.dtype == torch.float16
    with torch.no_grad():
        theirs = model.float()(**padded(texts)).logits.numpy()
    np.testing.assert_allclose(ours, theirs, **CLOSE)


def test_a_model_in_training_mode_is_read_without_dropout_and_left_in_training_mode():
    model = tiny_model("bert", "classification")
    texts = random_texts((7, 4))
    calm = predict(model, texts)
    model.train()
    np.testing.assert_array_equal(predict(model, texts), calm)
    assert model.training


# --- edges ---------------------------------------------------------------------------------------


def test_longer_texts_than_the_position_table_are_cut_and_keep_their_last_token():
    model = tiny_model("bert", "classification")
    long = random_texts((N_POSITIONS + 9, 5))
    ids = long.ids[: long.offsets[1]].tolist()
    by_hand = Texts.of([ids[: N_POSITIONS - 1] + ids[-1:], long.ids[long.offsets[1] :].tolist()])
    with torch.no_grad():
        theirs = model(**padded(by_hand)).logits.numpy()
    np.testing.assert_allclose(predict(model, long), theirs, **CLOSE)


def test_answers_of_a_cut_text_stay_at_their_places():
    model = tiny_model("bert", "question-answering")
    long = random_texts((N_POSITIONS + 9, 5))
    ours = predict(model, long)
    assert ours.shape == (len(long.ids), 2)
    cut = np.isinf(ours).all(1)
    assert cut.sum() == 9
    assert cut[N_POSITIONS - 1 : N_POSITIONS + 8].all()


def test_no_texts_and_texts_without_tokens_are_refused():
    model = tiny_model("bert", "classification")
    with pytest.raises(DataError, match="at least 1 text, got none"):
        predict(model, Texts.of([]))
    with pytest.raises(DataError, match="text 1 has no tokens"):
        predict(model, Texts.of([[5, 6], [], [7]]))


@pytest.mark.parametrize("head", ["mlm", "none"])
def test_predictions_of_a_model_without_a_task_head_are_refused(head):
    with pytest.raises(RequestError, match="head"):
        predict(tiny_model("bert", head), random_texts((3,)))


# --- packing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens_in_flight", [0, 1, 7, 30, 64, 10_000])
def test_every_token_is_in_one_chunk_and_no_chunk_is_too_large(tokens_in_flight):
    lengths = tuple(np.random.default_rng(0).integers(1, 40, size=200).tolist())
    texts = random_texts(lengths)
    seen = []
    for chunk in packed(texts, tokens_in_flight=tokens_in_flight):
        assert chunk.n_tokens <= 1.5 * tokens_in_flight or len(chunk.texts) == 1
        assert chunk.n_tokens == len(chunk.ids) == texts.lengths[chunk.texts].sum()
        np.testing.assert_array_equal(chunk.ids.numpy(), texts.ids[chunk.tokens])
        for group in chunk.groups:
            assert (texts.lengths[chunk.texts_of(group)] == group.length).all()
        np.testing.assert_array_equal(
            chunk.tokens[chunk.first_rows.numpy()], texts.offsets[chunk.texts]
        )
        seen.append(chunk.tokens)
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.arange(len(texts.ids)))


@pytest.mark.parametrize("n_tokens", [100, 101, 149, 151, 420, 1003])
def test_no_chunk_is_left_with_a_few_tokens(n_tokens):
    """It would read every weight once more: 101 tokens are one chunk, and no 100 and 1."""
    sizes = [
        chunk.n_tokens for chunk in packed(random_texts((1,) * n_tokens), tokens_in_flight=100)
    ]
    assert sum(sizes) == n_tokens
    assert max(sizes) - min(sizes) <= 1
    assert 66 <= max(sizes) <= 150


def test_a_repeated_chunk_holds_each_group_again_and_again():
    texts = random_texts((4, 4, 2))
    (chunk,) = packed(texts, tokens_in_flight=100)
    twice = chunk.repeated(2)
    assert [(g.start, g.n_texts, g.length) for g in twice.groups] == [(0, 4, 4), (16, 2, 2)]
    assert twice.texts.tolist() == [0, 1, 0, 1, 2, 2]
    assert twice.positions.tolist() == [0, 1, 2, 3] * 4 + [0, 1] * 2
