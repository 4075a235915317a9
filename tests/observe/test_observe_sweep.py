"""The sweep equals a loop that writes 1/L into the attention weights of one pass per target."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

from microtome.errors import EditError, RequestError
from microtome.families import adapt
from microtome.observe import every_head_and_layer, forward, predict, sweep, target
from support.naive import naive_logits, on_real, padded, random_texts
from support.tiny import FAMILY_TYPES, N_HEADS, N_LAYERS, save_tiny, tiny_model

LENGTHS = (9, 5, 14, 5, 2, 9, 1)
HOWS = ("uniform", "zero")
SETS = [("0.1", "2.3"), ("0.*", "1.0", "2.2"), ("1.1", "1.2"), ("*.2",), ("*.*",), ("2.0", "2.1")]


def pairs(one):
    return {(head.layer, head.head) for head in one.heads}


def assert_same(ours, theirs, baseline, least=1e-2):
    """Logits within 1e-4 where the effect shows; the same label wherever the margin is clear."""
    effect = np.abs(theirs - baseline).max()
    assert effect >= least, "the test model is too calm to show anything"
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    top = np.sort(theirs, axis=-1)
    clear = top[..., -1] - top[..., -2] > 2e-4
    assert clear.mean() > 0.9
    assert (ours.argmax(-1) == theirs.argmax(-1))[clear].all()


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_every_head_and_layer_equals_the_naive_loop(kind, how):
    model = tiny_model(kind, "classification", num_labels=3)
    texts = random_texts(LENGTHS)
    batch = padded(texts, kind, to=20)
    ours = sweep(model, texts, how=how, tokens_in_flight=60)
    plain = naive_logits(model, batch).numpy()
    np.testing.assert_allclose(ours.baseline, plain, rtol=1e-4, atol=1e-4)
    shared = kind == "albert"
    assert len(ours.targets) == (N_HEADS if shared else N_LAYERS * N_HEADS + N_LAYERS)
    for one, logits in zip(ours.targets, ours.logits, strict=True):
        assert_same(logits, naive_logits(model, batch, pairs(one), how).numpy(), plain)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kind", ["bert", "distilbert", "modernbert", "nomic_bert", "eurobert"])
def test_any_set_of_heads_equals_the_naive_loop(kind, how):
    model = tiny_model(kind, "classification", num_labels=3, seed=1)
    texts = random_texts(LENGTHS, seed=1)
    batch = padded(texts, kind)
    ours = sweep(model, texts, SETS, how=how, tokens_in_flight=100)
    plain = naive_logits(model, batch).numpy()
    for one, logits in zip(ours.targets, ours.logits, strict=True):
        assert_same(logits, naive_logits(model, batch, pairs(one), how).numpy(), plain)


@pytest.mark.parametrize("kind", ["bert", "albert", "modernbert"])
def test_question_answering_sweeps_give_every_token_of_every_text(kind):
    model = tiny_model(kind, "question-answering")
    texts = random_texts(LENGTHS)
    batch = padded(texts, kind)
    wanted = ["*.1"] if kind == "albert" else ["0.1", "1.*", "2.3"]
    ours = sweep(model, texts, wanted, tokens_in_flight=50)
    plain = on_real(naive_logits(model, batch), batch).numpy()
    np.testing.assert_allclose(ours.baseline, plain, rtol=1e-4, atol=1e-4)
    for one, logits in zip(ours.targets, ours.logits, strict=True):
        theirs = on_real(naive_logits(model, batch, pairs(one)), batch).numpy()
        assert np.abs(theirs - plain).max() >= 1e-2
        np.testing.assert_allclose(logits, theirs, rtol=1e-4, atol=1e-4)


def test_answer_logits_can_be_reduced_chunk_by_chunk():
    """Kept per text: the best start and its score, from every target's own logits."""
    model = tiny_model("bert", "question-answering")
    texts = random_texts(LENGTHS)

    def best_start(logits, chunk):
        starts = np.split(logits[:, 0], np.cumsum(texts.lengths[chunk.texts])[:-1])
        return np.array([[own.argmax(), own.max()] for own in starts], dtype=np.float32)

    whole = sweep(model, texts, ["0.1", "2.*"], tokens_in_flight=50)
    ours = sweep(model, texts, ["0.1", "2.*"], reduce=best_start, tokens_in_flight=50)
    assert ours.logits.shape == (2, len(texts), 2)
    for logits, reduced in zip(whole.logits, ours.logits, strict=True):
        starts = np.split(logits[:, 0], texts.offsets[1:-1])
        np.testing.assert_array_equal(reduced[:, 0], [own.argmax() for own in starts])
        np.testing.assert_allclose(reduced[:, 1], [own.max() for own in starts], rtol=1e-5)


def test_mean_pooled_sweeps_run_the_whole_last_layer():
    model = tiny_model("modernbert", "classification", classifier_pooling="mean", num_labels=3)
    texts = random_texts(LENGTHS)
    batch = padded(texts, "modernbert")
    ours = sweep(model, texts, ["2.1", "2.*", "0.0"])
    plain = naive_logits(model, batch).numpy()
    for one, logits in zip(ours.targets, ours.logits, strict=True):
        assert_same(logits, naive_logits(model, batch, pairs(one)).numpy(), plain)


def test_an_unshared_albert_is_swept_layer_by_layer():
    model = tiny_model("albert", "classification", num_labels=3)
    adapt(model).unshare_()
    texts = random_texts(LENGTHS)
    batch = padded(texts, "albert")
    ours = sweep(model, texts, ["0.1", "2.*"])
    plain = naive_logits(model, batch).numpy()
    for one, logits in zip(ours.targets, ours.logits, strict=True):
        assert_same(logits, naive_logits(model, batch, pairs(one)).numpy(), plain)


@pytest.mark.parametrize("wanted", ["1.2", "1.*", ["*.0", "1.2"]])
def test_single_layers_of_a_shared_albert_are_refused_and_unshare_is_named(wanted):
    model = tiny_model("albert", "classification")
    with pytest.raises(EditError, match=r"unshare\(\)"):
        sweep(model, random_texts((4,)), [wanted])


@pytest.mark.parametrize("tokens_in_flight", [1, 13, 150, 5000])
def test_the_size_of_the_batch_changes_nothing(tokens_in_flight):
    model = tiny_model("bert", "classification", num_labels=3)
    texts = random_texts(LENGTHS)
    once = sweep(model, texts, tokens_in_flight=300)
    again = sweep(model, texts, tokens_in_flight=tokens_in_flight)
    np.testing.assert_allclose(again.logits, once.logits, rtol=1e-5, atol=1e-5)


def test_texts_can_come_in_any_order():
    model = tiny_model("bert", "classification", num_labels=3)
    texts, turned = random_texts((3, 8, 5)), random_texts((3, 8, 5))
    order = [2, 0, 1]
    rows = [texts.ids[texts.offsets[i] : texts.offsets[i + 1]].tolist() for i in order]
    turned = type(texts).of(rows)
    np.testing.assert_allclose(
        sweep(model, turned).logits, sweep(model, texts).logits[:, order], rtol=1e-5, atol=1e-5
    )


def test_a_checkpoint_saved_in_half_precision_is_swept_in_float32(tmp_path):
    save_tiny(tmp_path, "bert", "classification", dtype=torch.float16, num_labels=3)
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert model.dtype == torch.float16
    texts = random_texts(LENGTHS)
    ours = sweep(model, texts, ["1.1", "0.*"])
    assert model.dtype == torch.float16
    batch, model = padded(texts), model.float()
    plain = naive_logits(model, batch).numpy()
    for one, logits in zip(ours.targets, ours.logits, strict=True):
        assert_same(logits, naive_logits(model, batch, pairs(one)).numpy(), plain)


def test_the_baseline_is_the_prediction_and_the_model_is_left_as_it_was():
    model = tiny_model("bert", "classification")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    texts = random_texts(LENGTHS)
    done = []
    ours = sweep(model, texts, progress=lambda *step: done.append(step))
    np.testing.assert_allclose(ours.baseline, predict(model, texts), rtol=1e-5, atol=1e-5)
    assert done[-1] == (len(texts), len(texts))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    plain, off = ours.predictions()
    assert plain.shape == (len(texts),)
    assert off.shape == (len(ours.targets), len(texts))


def test_tokens_in_flight_are_bounded_whatever_the_number_of_texts(monkeypatch):
    """Memory is what one chunk's variants take: nothing larger is ever handed to a layer."""
    model = tiny_model("bert", "classification")
    largest = []
    original = forward.layer_forward

    def watched(family, index, states, chunk):
        largest.append(len(states))
        return original(family, index, states, chunk)

    monkeypatch.setattr(forward, "layer_forward", watched)
    lengths = tuple(np.random.default_rng(0).integers(3, 30, size=150).tolist())
    sweep(model, random_texts(lengths), tokens_in_flight=200)
    assert 100 < max(largest) <= 300  # half as many again at most


def test_wrong_requests_are_refused_with_what_was_wanted():
    model = tiny_model("bert", "classification")
    texts = random_texts((4,))
    with pytest.raises(RequestError, match="uniform, zero"):
        sweep(model, texts, how="random")
    with pytest.raises(RequestError, match="layer 9"):
        sweep(model, texts, ["9.0"])
    with pytest.raises(RequestError, match="empty set"):
        target(adapt(model), [])
    with pytest.raises(RequestError, match="mlm head"):
        sweep(tiny_model("bert", "mlm"), texts)


# --- mutants: the comparison above must see each of these -------------------------------


def worst_difference(model, kind, how="uniform"):
    texts = random_texts(LENGTHS)
    batch = padded(texts, kind, to=20)
    ours = sweep(model, texts, how=how)
    return max(
        np.abs(logits - naive_logits(model, batch, pairs(one), how).numpy()).max()
        for one, logits in zip(ours.targets, ours.logits, strict=True)
    )


def test_a_sweep_that_does_nothing_is_seen(monkeypatch):
    monkeypatch.setattr(
        "microtome.observe.sweeping._off", lambda t, i, f, like: torch.zeros(len(t), N_HEADS)
    )
    assert worst_difference(tiny_model("bert", "classification"), "bert") > 1e-2


def test_a_sweep_of_the_wrong_head_is_seen(monkeypatch):
    from microtome.observe import sweeping

    right = sweeping._off
    monkeypatch.setattr(sweeping, "_off", lambda *given: right(*given).roll(1, dims=1))
    assert worst_difference(tiny_model("bert", "classification"), "bert") > 1e-2


def test_a_mean_over_the_wrong_tokens_is_seen(monkeypatch):
    """As when padding is averaged too: the sum divided by the longest text's length."""
    right = forward.uniform_values
    monkeypatch.setattr(forward, "uniform_values", lambda *given: right(*given) * 0.7)
    assert worst_difference(tiny_model("bert", "classification"), "bert") > 1e-2


def test_a_forgotten_window_is_seen(monkeypatch):
    monkeypatch.setattr(forward, "window_mask", lambda *given: None)
    assert worst_difference(tiny_model("modernbert", "classification"), "modernbert") > 1e-2


def test_default_targets_are_all_heads_then_all_layers():
    family = adapt(tiny_model("bert", "classification"))
    names = [one.name for one in every_head_and_layer(family)]
    assert names[:2] == ["0.0", "0.1"]
    assert names[-1] == f"{N_LAYERS - 1}.*"
