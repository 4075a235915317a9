"""What is particular to MPNet: a position bias that all layers share, added after q·k."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForTokenClassification

from microtome.edits import parse
from microtome.errors import EditError
from microtome.families import adapt
from microtome.families.mpnet import MPNet
from microtome.models import load
from microtome.observe import predict, sweep
from support.naive import naive_logits, on_real, padded, random_texts
from support.tiny import N_POSITIONS, save_tiny, scale_up_, tiny_batch, tiny_config, tiny_model

LENGTHS = (30, 9, 17, 1)  # from 8 tokens apart on, several distances share a value


@pytest.mark.parametrize("text", ["disable(1.2)", "disable(*.2)", "keep(0-1) | disable(0.*)"])
def test_uniform_attention_can_not_be_written_into_weights_and_zero_is_named(text):
    with pytest.raises(EditError, match=r"disable\(.*position bias.*how=zero"):
        parse(text)(tiny_model("mpnet"))


def test_zero_queries_would_not_be_uniform():
    """The reason for the refusal, in plain transformers: the bias remains."""
    model = tiny_model("mpnet")
    attention = model.mpnet.encoder.layer[1].attention.attn
    with torch.no_grad():
        attention.q.weight.zero_()
        attention.q.bias.zero_()
        maps = model(**tiny_batch("mpnet", lengths=(9,)), output_attentions=True).attentions[1]
    assert (maps - 1 / 9).abs().max() > 0.05


@pytest.mark.parametrize("head", ["classification", "question-answering"])
def test_sweeps_compute_uniform_heads_directly(head):
    """Long enough for the distances that share a bucket, against explicit attention weights."""
    model = tiny_model("mpnet", head)
    texts = random_texts(LENGTHS)
    batch = padded(texts, "mpnet", to=40)
    wanted = ["0.1", "1.*", "2.3", ("0.0", "2.2")]
    ours = sweep(model, texts, wanted, tokens_in_flight=40)
    real = batch["attention_mask"].bool()
    for one, logits in zip(ours.targets, ours.logits, strict=True):
        heads = {(head.layer, head.head) for head in one.heads}
        theirs = naive_logits(model, batch, heads)
        theirs = theirs[real] if head == "question-answering" else theirs
        np.testing.assert_allclose(logits, theirs.numpy(), rtol=1e-4, atol=1e-4)


def test_taggers_equal_plain_transformers():
    config = tiny_config("mpnet", num_labels=3)
    model = AutoModelForTokenClassification.from_config(config, attn_implementation="eager").eval()
    scale_up_(model)
    texts = random_texts(LENGTHS)
    batch = padded(texts, "mpnet")
    with torch.no_grad():
        theirs = on_real(model(**batch).logits, batch).numpy()
    np.testing.assert_allclose(predict(model, texts), theirs, rtol=1e-4, atol=1e-4)


def test_a_forgotten_bias_shows(monkeypatch):
    model = tiny_model("mpnet", "classification")
    texts = random_texts(LENGTHS)
    right = predict(model, texts)
    monkeypatch.setattr(MPNet, "position_scores", lambda *given: None)
    assert np.abs(predict(model, texts) - right).max() > 1e-2


def test_the_bias_kept_for_long_texts_is_never_that_of_other_weights():
    model = tiny_model("mpnet", "classification")
    texts = random_texts(LENGTHS)
    before = predict(model, texts)
    with torch.no_grad():
        model.mpnet.encoder.relative_attention_bias.weight.add_(torch.randn(32, 4))
        theirs = model(**padded(texts, "mpnet")).logits.numpy()
    after = predict(model, texts)
    assert np.abs(after - before).max() > 1e-2
    np.testing.assert_allclose(after, theirs, rtol=1e-4, atol=1e-4)


def test_positions_start_after_the_padding_tokens():
    assert adapt(tiny_model("mpnet")).n_positions == N_POSITIONS - 2


def test_a_masked_lm_in_name_only_is_headless(tmp_path):
    """all-mpnet-base-v2: its config names the masked LM that it was trained from."""
    folder = save_tiny(tmp_path / "m", "mpnet", "mlm")
    file = folder / "model.safetensors"
    kept = {
        name.removeprefix("mpnet."): value
        for name, value in load_file(file).items()
        if not name.startswith("lm_head.")
    }
    save_file(kept, file, metadata={"format": "pt"})
    model = load(folder)
    assert type(model).__name__ == "MPNetModel"
    batch = tiny_batch("mpnet")
    with torch.no_grad():
        theirs = tiny_model("mpnet", "mlm").mpnet(**batch).last_hidden_state
        torch.testing.assert_close(model(**batch).last_hidden_state, theirs)
