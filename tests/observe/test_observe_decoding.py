"""Decoding equals ``argmax`` over the head's full logits, token by token, at every depth."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from microtome.errors import RequestError
from microtome.families import adapt
from microtome.observe import (
    Texts,
    Vocabulary,
    decode,
    decoded_ids,
    depth_rows,
    fitted_head,
    readout_of,
    scanning,
)
from support.naive import faithful_model, full_logits, on_real, padded, random_texts
from support.tiny import FAMILY_TYPES, VOCABULARY, tiny_model

LENGTHS = (9, 5, 14, 5, 3, 9)
PLAIN = Vocabulary.of([f"t{i}" for i in range(VOCABULARY)], special_ids=[0, 1, 2, 3, 4])


@pytest.mark.parametrize("early_exit", [True, False])
@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_counts_equal_argmax_over_full_logits_at_every_depth(kind, early_exit):
    texts = random_texts(LENGTHS, segments=kind in ("bert", "electra", "albert"))
    model = faithful_model(kind, texts)
    batch = padded(texts, kind)
    by_depth, last = full_logits(model, kind, batch)
    torch.testing.assert_close(by_depth[-1], last, rtol=1e-4, atol=1e-4)
    ours = decode(model, texts, PLAIN, special=True, tokens_in_flight=20, early_exit=early_exit)
    assert ours.readout == "mlm"
    for depth, logits in enumerate(by_depth):
        right = logits.argmax(-1) == batch["input_ids"]
        for index, row in enumerate(right):
            assert ours.right[depth, index].sum() == row[: LENGTHS[index]].sum()
    shares = ours.accuracy()
    assert shares.max() > 0.2, "nothing comes back: the test model is too loud"
    assert shares.min() < 0.95


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_decoded_tokens_are_those_of_the_models_own_head(kind):
    texts = random_texts((11,))
    model = faithful_model(kind, texts)
    by_depth, last = full_logits(model, kind, padded(texts, kind))
    ours = decoded_ids(model, texts.ids.tolist())
    assert ours == [logits[0].argmax(-1).tolist() for logits in by_depth]
    assert ours[-1] == last[0].argmax(-1).tolist()


@pytest.mark.parametrize("kind", ["bert", "albert", "electra", "modernbert"])
def test_tied_is_the_nearest_word_embedding_by_dot_product(kind):
    model = tiny_model(kind, "none")
    words = model.get_input_embeddings().weight
    texts = random_texts(LENGTHS)
    batch = padded(texts, kind)
    with torch.no_grad():
        hidden = model(**batch, output_hidden_states=True).hidden_states
    # ModernBERT's inner states are compared after its final norm, as any of its heads reads them.
    normed = [model.final_norm(h) for h in hidden[:-1]] if kind == "modernbert" else hidden[:-1]
    up = {
        "albert": lambda: model.encoder.embedding_hidden_mapping_in.weight,
        "electra": lambda: model.embeddings_project.weight,
    }.get(kind, lambda: torch.eye(words.shape[1]))()
    ours = decode(model, texts, PLAIN, special=True)
    assert ours.readout == "tied"
    for depth, state in enumerate([*normed, hidden[-1]]):
        right = (state @ up @ words.T).argmax(-1) == batch["input_ids"]
        assert ours.right[depth].sum() == on_real(right, batch).sum()


def test_a_graft_reads_one_models_states_with_anothers_head():
    donor, tuned = tiny_model("bert", "mlm"), tiny_model("bert", "classification", seed=3)
    texts = random_texts(LENGTHS)
    batch = padded(texts)
    with torch.no_grad():
        hidden = tuned.bert(**batch, output_hidden_states=True).hidden_states
    ours = decode(tuned, texts, PLAIN, graft=donor, special=True)
    assert ours.readout == "graft"
    for depth, state in enumerate(hidden):
        right = donor.cls(state).argmax(-1) == batch["input_ids"]
        assert ours.right[depth].sum() == on_real(right, batch).sum()


def test_grafts_that_do_not_fit_are_refused():
    family = adapt(tiny_model("bert", "classification"))
    with pytest.raises(RequestError, match="width 16"):
        readout_of(family, graft=tiny_model("bert", "mlm", hidden_size=16))
    with pytest.raises(RequestError, match="vocabulary 50"):
        readout_of(family, graft=tiny_model("bert", "mlm", vocab_size=50))
    with pytest.raises(RequestError, match="expects a model with an MLM head"):
        readout_of(family, graft=tiny_model("bert", "none"))
    with pytest.raises(RequestError, match="classification head"):
        readout_of(family, "mlm")
    with pytest.raises(RequestError, match="auto, mlm, tied"):
        readout_of(family, "lens")


def test_a_fitted_head_is_a_readout_of_its_own():
    model = tiny_model("bert", "mlm")
    decoder = model.cls.predictions.decoder
    made = fitted_head(adapt(model), model.cls.predictions.transform, decoder)
    texts = random_texts(LENGTHS)
    ours = decode(model, texts, PLAIN, readout=made)
    assert ours.readout == "fit"
    np.testing.assert_array_equal(ours.right, decode(model, texts, PLAIN).right)


@pytest.mark.parametrize("together", [1, 70, 10_000])
def test_how_many_depths_go_together_changes_no_count(monkeypatch, together):
    """One depth at a time, some, all; with texts in one chunk and in several; some depths only."""
    texts = random_texts(LENGTHS)
    model = faithful_model("bert", texts)
    by_depth, _ = full_logits(model, "bert", batch := padded(texts))
    wanted = [int(on_real(own.argmax(-1) == batch["input_ids"], batch).sum()) for own in by_depth]
    monkeypatch.setattr(scanning, "ROWS_TOGETHER", together)
    for in_flight in (10, 800):
        ours = decode(model, texts, PLAIN, special=True, tokens_in_flight=in_flight)
        assert ours.right.sum((1, 2)).tolist() == wanted
    some = decode(model, texts, PLAIN, special=True, depths=(0, 2))
    assert some.right.sum((1, 2)).tolist() == [wanted[0], wanted[2]]


# --- what is counted ---------------------------------------------------------------


# fmt: on


def test_ids_beyond_the_vocabulary_are_refused():
    with pytest.raises(RequestError, match="token id 500"):
        decode(tiny_model("bert", "mlm"), Texts.of([[1, 500, 2]]), PLAIN)


def test_longer_texts_than_the_table_are_cut_and_counted():
    ours = decode(tiny_model("bert", "mlm"), random_texts((80, 6)), PLAIN)
    assert ours.n_truncated == 1
    assert ours.total.sum(1).tolist() == [62, 4]


# --- what comes out ---------------------------------------------------------------


def test_rows_hold_shares_with_an_interval_by_text_and_the_control():
    texts = random_texts((9,) * 40)
    model = faithful_model("bert", texts)
    control = tiny_model("bert", "mlm", seed=5)
    ours, theirs = decode(model, texts, PLAIN), decode(control, texts, PLAIN)
    rows = depth_rows(ours, theirs)
    assert [row["depth"] for row in rows] == [0, 1, 2, 3]
    for row in rows:
        depth = row["depth"]
        by_hand = ours.right[depth].sum() / ours.total.sum()
        assert row["accuracy"] == pytest.approx(by_hand)
        assert row["low"] <= row["accuracy"] <= row["high"]
        assert row["control"] == pytest.approx(theirs.right[depth].sum() / ours.total.sum())
    assert any(row["low"] < row["high"] for row in rows)


def test_an_interval_over_clusters_is_wider_than_over_texts_that_are_alike():
    """Ten copies of each of six texts: ten times the rows, no more to know."""
    six = [random_texts((12,), seed=s).ids.tolist() for s in range(6)]
    model = faithful_model("bert", Texts.of(six), seed=2)
    ours = decode(model, Texts.of(six * 10), PLAIN)
    by_text = ours.interval(2)
    by_cluster = ours.interval(2, clusters=np.arange(60) % 6)
    assert by_cluster.high - by_cluster.low > 1.5 * (by_text.high - by_text.low)


def test_decoding_leaves_the_model_as_it_was():
    model = tiny_model("bert", "mlm")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    decode(model, random_texts(LENGTHS), PLAIN)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_a_forgotten_final_norm_is_seen(monkeypatch):
    """The mutant: ModernBERT's inner states read without the norm that its head expects."""
    texts = random_texts(LENGTHS)
    model = faithful_model("modernbert", texts)
    right = decode(model, texts, PLAIN).right
    monkeypatch.setattr(type(adapt(model)), "final_norm", lambda self, states: states)
    assert (decode(model, texts, PLAIN).right != right).any()


def test_a_fitted_transform_reads_normed_states():
    model = tiny_model("modernbert", "none")
    family = adapt(model)
    made = fitted_head(family, nn.Identity(), nn.Linear(32, VOCABULARY))
    states = torch.randn(3, 32)
    torch.testing.assert_close(made.features(states), model.final_norm(states))
