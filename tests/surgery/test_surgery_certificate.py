"""Certificates: they pass for what surgery does, and every mutant of it is caught."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from transformers import AutoModelForMaskedLM

from microtome.edits import parse
from microtome.errors import CertificateFailed
from microtome.families import adapt
from microtome.surgery import application, apply, certify, certify_weights
from microtome.surgery.proof import look, probe, uniform_map
from microtome.values import Head
from support.surgery_cases import (
    DEPTH_EDITS,
    IDENTITIES,
    UNIFORM,
    WEIGHT_EDITS,
    disable_text,
    logits,
    ready,
)
from support.tiny import FAMILY_TYPES, tiny_model


def names_of_failed(certificate):
    return {check.name for check in certificate.checks if not check.passed}


def saved(model, folder):
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", FAMILY_TYPES)
@pytest.mark.parametrize("text", [*DEPTH_EDITS, *WEIGHT_EDITS, *IDENTITIES])
def test_every_edit_round_trips_through_plain_transformers_and_is_certified(kind, text, tmp_path):
    model, text = ready(kind), disable_text(kind, text)
    edited = parse(text)(model)
    certificate = certify(parse(text), model, edited, saved(edited, tmp_path))
    assert not names_of_failed(certificate)
    loaded = AutoModelForMaskedLM.from_pretrained(tmp_path)
    torch.testing.assert_close(logits(loaded, kind), logits(edited, kind), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", UNIFORM)
def test_a_disabled_head_is_uniform_in_plain_transformers_and_the_others_are_as_before(
    kind, tmp_path
):
    model = ready(kind)
    saved(parse("disable(1.2)")(model), tmp_path)
    batch = probe(adapt(model))
    real = batch["attention_mask"].bool()
    loaded = AutoModelForMaskedLM.from_pretrained(tmp_path, attn_implementation="eager")
    with torch.no_grad():
        maps = loaded(**batch, output_attentions=True).attentions[1]  # (B, H, L, L)
    before = look(model, batch).maps[1]
    length = real.sum(1)
    for text in range(len(real)):
        n = int(length[text])
        wanted = torch.full((n, n), 1 / n)
        if kind == "modernbert":  # layer 1 slides: uniform within three tokens on either side
            near = (torch.arange(n)[:, None] - torch.arange(n)).abs() <= 3
            wanted = near / near.sum(1, keepdim=True)
        torch.testing.assert_close(maps[text, 2, :n, :n], wanted, rtol=0, atol=1e-7)
        assert bool((maps[text, :, :n, n:] == 0).all())
    for head in (0, 1, 3):
        assert torch.equal(maps[:, head][real], before[:, head][real])


def no_op(family, head, edit):
    """A mutant that does nothing."""


def wrong_layer(family, head, edit):
    weights_disable(family, Head((head.layer + 1) % 3, head.head), edit)


def wrong_head(family, head, edit):
    weights_disable(family, Head(head.layer, (head.head + 1) % 4), edit)


def forgotten_bias(family, head, edit):
    family.part("query").weight(family.layers[head.layer])[family.head_rows(head.head)] = 0.0


def keys_instead_of_queries(family, head, edit):
    family.part("key").weight(family.layers[head.layer])[family.head_rows(head.head)] = 0.0


def one_row_too_many(family, head, edit):
    weights_disable(family, head, edit)
    family.part("value").weight(family.layers[head.layer])[0, 0] += 1.0


weights_disable = application.disable_
DISABLE_MUTANTS = [
    no_op, wrong_layer, wrong_head, forgotten_bias, keys_instead_of_queries, one_row_too_many,
]  # fmt: skip


@pytest.mark.parametrize("mutant", DISABLE_MUTANTS)
@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_mutants_of_disable_are_caught(kind, mutant, monkeypatch):
    if mutant is forgotten_bias and kind in ("modernbert", "nomic_bert", "eurobert"):
        pytest.skip("these families have no query bias to forget")
    model = ready(kind)
    monkeypatch.setattr(application, "disable_", mutant)
    edit = parse(disable_text(kind, "disable(1.2)"))
    certificate = certify_weights(edit, model, edit(model))
    assert "layers" in names_of_failed(certificate)
    with pytest.raises(CertificateFailed, match="layers"):
        certificate.require()


@pytest.mark.parametrize("kind", FAMILY_TYPES)
@pytest.mark.parametrize("text", ["reinit(1, seed=0)", "randomize(seed=0)"])
def test_mutants_of_fresh_weights_are_caught(kind, text, monkeypatch):
    """The trap of the library: initialisers that change nothing because weights are marked."""
    model = ready(kind)
    monkeypatch.setattr(application, "truncated_normal_", lambda values, std, generator: None)
    monkeypatch.setattr(application, "randomise_", lambda model, seed: None)
    edited = parse(text)(model)
    assert not certify_weights(parse(text), model, edited).passed


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_a_reinit_of_the_wrong_scale_or_layer_is_caught(kind, monkeypatch):
    model = ready(kind)
    wanted = parse("reinit(1, seed=0)")
    assert not certify_weights(wanted, model, parse("reinit(1, seed=0, std=0.3)")(model)).passed
    assert not certify_weights(wanted, model, parse("reinit(2, seed=0)")(model)).passed
    assert not certify_weights(wanted, model, parse("reinit(1, seed=0, parts=all)")(model)).passed


@pytest.mark.parametrize("kind", FAMILY_TYPES)
@pytest.mark.parametrize(
    ("said", "done"),
    [
        ("duplicate(1)", "duplicate(2)"),
        ("duplicate(1)", "keep(0-2)"),
        ("order(0, 2, 1)", "order(0, 1, 2)"),
        ("remove(2)", "remove(1)"),
        ("extend(3)", "duplicate(1)"),
        ("disable(1.2, how=zero)", "disable(1.2)"),
        ("disable(1.2)", "disable(1.2) | disable(2.2)"),
    ],
)
def test_a_certificate_for_another_edit_fails(kind, said, done):
    model = ready(kind)
    if kind not in UNIFORM and (said, done) == ("disable(1.2, how=zero)", "disable(1.2)"):
        done = "disable(1.1)"
    said, done = disable_text(kind, said), disable_text(kind, done)
    assert not certify_weights(parse(said), model, parse(done)(model)).passed


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_forgotten_bookkeeping_is_caught(kind):
    if kind == "mpnet":
        pytest.skip("its layers point to no config")
    model = ready(kind)
    edited = parse("duplicate(1)")(model)
    for module in adapt(edited).layers[2].modules():
        if hasattr(module, "config"):
            module.config = SimpleNamespace()
    assert "bookkeeping" in names_of_failed(certify_weights(parse("duplicate(1)"), model, edited))


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_a_changed_embedding_is_caught(kind):
    model, edit = ready(kind), parse(disable_text(kind, "disable(1.2)"))
    edited = edit(model)
    adapt(edited).word_embeddings.detach()[5, 5] += 1e-6
    failed = names_of_failed(certify_weights(edit, model, edited))
    assert failed == {"other tensors"}


@pytest.mark.parametrize("kind", UNIFORM)
def test_a_forgotten_mask_is_caught_by_running_the_model(kind, tmp_path, monkeypatch):
    """Uniform over all positions, padding included: right weights, wrong attention."""
    model = ready(kind)
    edited = parse("disable(1.2)")(model)
    batch = probe(adapt(model))
    seen = look(edited, batch)
    everywhere = torch.ones_like(batch["attention_mask"]).bool()
    wrong = uniform_map(adapt(edited), 1, everywhere)
    seen.maps[1][:, 2] = wrong
    monkeypatch.setattr("microtome.surgery.proof.look", lambda model, batch: seen)
    certificate = certify(parse("disable(1.2)"), model, edited, saved(edited, tmp_path))
    assert "uniform attention" in names_of_failed(certificate)


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_a_checkpoint_that_lost_a_layer_is_caught(kind, tmp_path):
    model = ready(kind)
    edited = parse("duplicate(1)")(model)
    saved(model, tmp_path)  # the base, not the edited model
    certificate = certify(parse("duplicate(1)"), model, edited, tmp_path)
    assert "round trip" in names_of_failed(certificate)


def test_nan_weights_are_a_warning_not_a_failure():
    model = tiny_model("bert")
    adapt(model).part("key").weight(adapt(model).layers[0])[0, 0] = float("nan")
    certificate = certify_weights(parse("disable(1.2)"), model, apply(parse("disable(1.2)"), model))
    assert certificate.passed
    assert "NaN" in certificate.warnings[0]
