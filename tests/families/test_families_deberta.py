"""What is particular to DeBERTa-v2 and v3: its variants, by config, against plain transformers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForTokenClassification

from microtome.edits import parse
from microtome.errors import UnsupportedFamily
from microtome.families import adapt
from microtome.families.deberta import Deberta, skewed
from microtome.models import cost, load
from microtome.observe import predict, sweep
from microtome.observe.attention import stream
from microtome.observe.packing import packed
from microtome.observe.reductions import SampledMaps
from microtome.observe.texts import fitted
from microtome.surgery import application, certify, certify_weights
from microtome.training.finetune.forward import logits_of
from support.naive import naive_logits, on_real, padded, random_texts
from support.tiny import save_tiny, scale_up_, tiny_batch, tiny_config, tiny_model

KIND = "deberta-v2"
LENGTHS = (30, 9, 17, 1, 9)
VARIANTS = {
    "v3": {},
    "unshared": {"share_att_key": False},
    "c2p": {"pos_att_type": ["c2p"]},
    "p2c, unshared": {"pos_att_type": ["p2c"], "share_att_key": False},
    "no buckets": {"position_buckets": -1, "max_relative_positions": 6},
    "as text, no norm": {"pos_att_type": "c2p|p2c", "norm_rel_ebd": "none"},
    "absolute positions": {
        "relative_attention": False, "position_biased_input": True, "norm_rel_ebd": "none",
    },  # its scale counts the terms that it doesn't have
    "segments, narrow": {"type_vocab_size": 2, "embedding_size": 16, "position_biased_input": True},
}  # fmt: skip
each_variant = pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)


@each_variant
def test_predictions_and_sweeps_equal_explicit_attention(options):
    model = tiny_model(KIND, "classification", num_labels=3, **options)
    texts = random_texts(LENGTHS, segments="type_vocab_size" in options)
    batch = padded(texts, KIND, to=40)
    ours = sweep(model, texts, ["0.1", "1.*", "2.3", ("0.0", "2.2")], tokens_in_flight=60)
    theirs = naive_logits(model, batch).numpy()
    np.testing.assert_allclose(ours.baseline, theirs, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(predict(model, texts), theirs, rtol=1e-4, atol=1e-4)
    for one, logits in zip(ours.targets, ours.logits, strict=True):
        heads = {(head.layer, head.head) for head in one.heads}
        off = naive_logits(model, batch, heads).numpy()
        assert np.abs(off - theirs).max() > 1e-2
        np.testing.assert_allclose(logits, off, rtol=1e-4, atol=1e-4)


def test_taggers_equal_plain_transformers():
    config = tiny_config(KIND, num_labels=3)
    model = AutoModelForTokenClassification.from_config(config, attn_implementation="eager").eval()
    scale_up_(model)
    texts = random_texts(LENGTHS)
    batch = padded(texts, KIND)
    with torch.no_grad():
        theirs = on_real(model(**batch).logits, batch).numpy()
    np.testing.assert_allclose(predict(model, texts), theirs, rtol=1e-4, atol=1e-4)


@each_variant
def test_maps_equal_plain_transformers(options):
    model = tiny_model(KIND, "none", **options)
    texts = random_texts(LENGTHS)
    kept = SampledMaps(range(len(LENGTHS)))
    stream(model, texts, [kept])
    with torch.no_grad():
        theirs = model(**padded(texts, KIND), output_attentions=True).attentions
    for text, n in enumerate(LENGTHS):
        wanted = np.stack([maps[text, :, :n, :n].numpy() for maps in theirs])
        np.testing.assert_allclose(kept.maps[text], wanted, rtol=0, atol=1e-5)


@each_variant
def test_gradients_equal_plain_transformers(options):
    model = tiny_model(KIND, "classification", std=0.15, num_labels=3, **options)
    texts = random_texts(LENGTHS)
    (chunk,) = packed(fitted(texts, 64), tokens_in_flight=1000)
    weights = torch.linspace(-1, 1, len(LENGTHS) * 3).view(-1, 3)
    parameters = dict(model.named_parameters())
    loss = (logits_of(adapt(model), chunk) * weights[torch.from_numpy(chunk.texts)]).sum()
    ours = torch.autograd.grad(loss, parameters.values(), allow_unused=True)
    plain = (model(**padded(texts, KIND)).logits * weights).sum()
    theirs = torch.autograd.grad(plain, parameters.values(), allow_unused=True)
    for name, one, other in zip(parameters, ours, theirs, strict=True):
        one, other = (torch.zeros(()) if g is None else g for g in (one, other))
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4, msg=name)


@each_variant
def test_a_disabled_head_is_uniform_and_certified(options, tmp_path):
    model = tiny_model(KIND, **options)
    edit = parse("disable(1.2)")
    edited = edit(model)
    edited.save_pretrained(tmp_path)
    certificate = certify(edit, model, edited, tmp_path)
    assert certificate.passed, certificate
    assert "uniform attention" in {check.name for check in certificate.checks}
    with torch.no_grad():
        maps = edited(**tiny_batch(KIND, lengths=(9,)), output_attentions=True).attentions[1]
    torch.testing.assert_close(maps[0, 2], torch.full((9, 9), 1 / 9), rtol=0, atol=1e-6)


def test_position_queries_of_their_own_must_be_zero_too(monkeypatch):
    """A mutant that zeroes the content queries only."""
    model = tiny_model(KIND, share_att_key=False)
    monkeypatch.setattr(application, "QUERY_NAMES", ("query",))
    edit = parse("disable(1.2)")
    edited = edit(model)
    with torch.no_grad():
        maps = edited(**tiny_batch(KIND, lengths=(9,)), output_attentions=True).attentions[1]
    assert (maps[0, 2] - 1 / 9).abs().max() > 0.05
    assert not certify_weights(edit, model, edited).passed


def test_reinit_draws_position_projections_and_leaves_the_table():
    model = tiny_model(KIND, share_att_key=False)
    edited = parse("reinit(1, seed=0)")(model)
    before, after = model.state_dict(), edited.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert len(changed) == 8
    assert all(name.startswith("deberta.encoder.layer.1.") for name in changed)
    assert sum("pos_" in name for name in changed) == 2
    assert certify_weights(parse("reinit(1, seed=0)"), model, edited).passed


@pytest.mark.parametrize("without", ["position_scores", "scaling"])
def test_forgotten_terms_show(monkeypatch, without):
    model = tiny_model(KIND, "classification")
    texts = random_texts(LENGTHS)
    right = predict(model, texts)
    forgotten = {"position_scores": lambda *given: None, "scaling": property(lambda self: 8**-0.5)}
    monkeypatch.setattr(Deberta, without, forgotten[without])
    assert np.abs(predict(model, texts) - right).max() > 1e-2


@pytest.mark.parametrize(("n_rows", "n_columns"), [(1, 1), (1, 5), (4, 1), (3, 7), (6, 6)])
def test_skewing_picks_each_rows_distances(n_rows, n_columns):
    scores = torch.randn(2, n_rows, n_rows + n_columns)
    for a in range(n_rows):
        wanted = scores[:, a, n_rows - 1 - a : n_rows - 1 - a + n_columns]
        assert torch.equal(skewed(scores, n_columns)[:, a], wanted)


def test_the_new_masked_lm_head_is_read_and_survives(tmp_path):
    model = tiny_model(KIND, "mlm", legacy=False)
    family, batch = adapt(model), tiny_batch(KIND)
    with torch.no_grad():
        out = model(**batch, output_hidden_states=True)
        ours = family.mlm_decoder()(family.mlm_features(out.hidden_states[-1]))
    torch.testing.assert_close(ours, out.logits, rtol=1e-4, atol=1e-4)
    assert family.mlm_decoder().weight is family.word_embeddings
    edit = parse("duplicate(1)")
    edited = edit(model)
    edited.save_pretrained(tmp_path)
    assert certify(edit, model, edited, tmp_path).passed
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(**tiny_batch(KIND, lengths=(16,)))
    assert cost(model, length=16).flops_per_token == pytest.approx(counter.get_total_flops() / 16)


def test_tensors_tell_the_layout_of_a_head_that_the_config_does_not(tmp_path):
    """v3 as published: no architectures, no ``legacy``, and the head of replaced tokens."""
    folder = save_tiny(tmp_path / "m", KIND, "mlm", legacy=False)
    text = (folder / "config.json").read_text()
    text = text.replace('"legacy": false,', "").replace('"architectures"', '"formerly"')
    (folder / "config.json").write_text(text)
    tensors = load_file(folder / "model.safetensors")
    tensors["mask_predictions.classifier.weight"] = torch.zeros(1, 32)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    model, batch = load(folder), tiny_batch(KIND)
    assert type(model).__name__ == "DebertaV2ForMaskedLM"
    with torch.no_grad():
        theirs = tiny_model(KIND, "mlm", legacy=False)(**batch).logits
        torch.testing.assert_close(model(**batch).logits, theirs)


@pytest.mark.parametrize("options", [{}, {"share_att_key": False}, {"pos_att_type": ["p2c"]}])
def test_flops_count_position_terms(options):
    model = tiny_model(KIND, "classification", **options)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(**tiny_batch(KIND, lengths=(16,)))
    assert cost(model, length=16).flops_per_token == pytest.approx(counter.get_total_flops() / 16)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"conv_kernel_size": 3}, "conv_kernel_size 3"),
        ({"attention_head_size": 4}, "must be 8, got 4"),
    ],
)
def test_other_variants_are_refused_by_name(options, word):
    with pytest.raises(UnsupportedFamily, match=word):
        adapt(tiny_model(KIND, "none", **options))
