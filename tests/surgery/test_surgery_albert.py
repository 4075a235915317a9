"""ALBERT: one shared layer; only its count can change, until it is unshared."""

from __future__ import annotations

import copy

import pytest
import torch
from transformers import AutoModelForMaskedLM

from microtome.edits import parse
from microtome.errors import EditError, UnsupportedFamily
from microtome.families import adapt
from microtome.surgery import certify, certify_weights
from support.surgery_cases import fingerprint, logits
from support.tiny import tiny_model

COUNTS = {
    "extend(7)": 7,
    "extend(64)": 64,
    "duplicate(0-1)": 5,
    "duplicate(2, times=4)": 7,
    "repeat(0-2)": 6,
    "remove(1)": 2,
    "keep(0)": 1,
    "order(2, 1, 0, 0)": 4,
}


@pytest.mark.parametrize("text", COUNTS)
def test_a_depth_edit_changes_the_count_only(text, tmp_path):
    model = tiny_model("albert")
    edited = parse(text)(model)
    by_hand = copy.deepcopy(model)
    by_hand.config.num_hidden_layers = COUNTS[text]
    assert torch.equal(logits(edited, "albert"), logits(by_hand, "albert"))
    assert fingerprint(edited) == fingerprint(model)  # the same weights, applied more often
    edited.save_pretrained(tmp_path)
    assert certify(parse(text), model, edited, tmp_path).passed
    loaded = AutoModelForMaskedLM.from_pretrained(tmp_path)
    assert torch.equal(logits(loaded, "albert"), logits(by_hand, "albert"))


def test_more_than_64_applications_are_refused():
    with pytest.raises(EditError, match="64"):
        parse("extend(65)")(tiny_model("albert"))


@pytest.mark.parametrize("text", ["disable(1.2)", "reinit(top=1, seed=0)", "disable(0.*)"])
def test_single_layers_are_refused_and_the_remedy_is_named(text):
    model = tiny_model("albert")
    with pytest.raises(EditError, match=r"unshare\(\)"):
        parse(text)(model)
    assert certify_weights(
        parse(f"unshare() | {text}"), model, parse(f"unshare() | {text}")(model)
    ).passed


def test_a_head_can_be_disabled_at_every_depth():
    model = tiny_model("albert")
    edited = parse("disable(*.3)")(model)
    assert certify_weights(parse("disable(*.3)"), model, edited).passed
    changed = [
        n for n, v in edited.state_dict().items() if not torch.equal(v, model.state_dict()[n])
    ]
    prefix = "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.query"
    assert sorted(changed) == [f"{prefix}.bias", f"{prefix}.weight"]


def test_all_layers_together_can_be_reinitialised():
    model = tiny_model("albert")
    edited = parse("reinit(top=3, seed=0)")(model)
    assert certify_weights(parse("reinit(top=3, seed=0)"), model, edited).passed


@pytest.mark.parametrize("before", ["", "extend(5) | "])
def test_unshare_is_exact(before):
    model = tiny_model("albert")
    shared = parse(f"{before}extend(5)")(model) if before else model
    own = parse(f"{before}unshare()")(model)
    assert torch.equal(logits(own, "albert"), logits(shared, "albert"))
    layers = adapt(own).layers
    assert len({id(layer) for layer in layers}) == len(layers) == (5 if before else 3)
    assert certify_weights(parse(f"{before}unshare()"), model, own).passed


def test_after_unshare_layers_move_like_berts():
    model = tiny_model("albert")
    edits = parse("unshare() | reinit(0, seed=1, std=0.3) | order(0, 0, 2)")
    edited = edits(model)
    layers = [list(layer.parameters()) for layer in adapt(edited).layers]
    assert all(torch.equal(a, b) for a, b in zip(layers[0], layers[1], strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(layers[1], layers[2], strict=True))
    assert edited.config.num_hidden_groups == edited.config.num_hidden_layers == 3
    assert certify_weights(edits, model, edited).passed


def grouped():
    return tiny_model("albert", num_hidden_layers=4, num_hidden_groups=2)


def test_depth_edits_of_several_groups_are_refused_until_unshared():
    for text in ("extend(5)", "remove(1)", "duplicate(0)"):
        with pytest.raises(EditError, match=r"2 groups among 4 layers.*unshare\(\)"):
            parse(text)(grouped())
        assert certify_weights(
            parse(f"unshare() | {text}"), grouped(), parse(f"unshare() | {text}")(grouped())
        ).passed


def test_several_groups_unshare_exactly_and_allow_edits_of_whole_groups():
    model = grouped()
    assert adapt(model).sharing == (0, 0, 2, 2)
    assert torch.equal(logits(parse("unshare()")(model), "albert"), logits(model, "albert"))
    both = parse("disable(2.1, 3.1)")
    assert certify_weights(both, model, both(model)).passed
    with pytest.raises(EditError, match="same weights"):
        parse("disable(2.1)")(model)


def test_more_than_one_layer_in_a_group_is_refused_by_name():
    with pytest.raises(UnsupportedFamily, match="inner_group_num 2"):
        adapt(tiny_model("albert", inner_group_num=2))


def test_the_tied_readout_projects_back_by_the_transpose():
    model = tiny_model("albert")
    family = adapt(model)
    states = torch.randn(5, 32)
    up = model.albert.encoder.embedding_hidden_mapping_in.weight  # (D, E)
    assert family.tied_features(states).shape == (5, 16)
    torch.testing.assert_close(family.tied_features(states), torch.einsum("td,de->te", states, up))
