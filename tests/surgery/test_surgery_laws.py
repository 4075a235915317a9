"""The laws of surgery, on scaled-up tiny models of every family."""

from __future__ import annotations

import copy

import pytest
import torch

from microtome.edits import Edits, parse
from microtome.errors import EditError
from microtome.families import adapt
from support.surgery_cases import (
    DEPTH_EDITS,
    FREE,
    IDENTITIES,
    UNIFORM,
    WEIGHT_EDITS,
    disable_text,
    fingerprint,
    logits,
    ready,
)
from support.tiny import FAMILY_TYPES, ONLY_EAGER, tiny_batch, tiny_model


@pytest.mark.parametrize("kind", FAMILY_TYPES)
@pytest.mark.parametrize("text", IDENTITIES)
def test_identity_edits_are_bit_equal(kind, text):
    model = ready(kind)
    edited = parse(text)(model)
    assert edited is not model
    assert torch.equal(logits(edited, kind), logits(model, kind))
    assert fingerprint(edited) == fingerprint(model)


@pytest.mark.parametrize("kind", FAMILY_TYPES)
@pytest.mark.parametrize("text", [*DEPTH_EDITS, *WEIGHT_EDITS])
def test_the_input_model_is_untouched_bit_for_bit(kind, text):
    if kind == "modernbert" and text == "extend(4)":
        text = "extend(5)"  # the law is the same; the order differs and is tested below
    model = ready(kind)
    before, config, answer = fingerprint(model), model.config.to_dict(), logits(model, kind)
    parse(disable_text(kind, text))(model)
    assert fingerprint(model) == before
    assert model.config.to_dict() == config
    assert torch.equal(logits(model, kind), answer)


@pytest.mark.parametrize("kind", FAMILY_TYPES)
@pytest.mark.parametrize("text", DEPTH_EDITS)
def test_depth_edits_equal_layers_arranged_by_hand(kind, text):
    """The reference runs the base model's own blocks in the wanted order, by hand."""
    order = DEPTH_EDITS[text]
    if kind == "modernbert" and text == "extend(4)":
        order = (0, 1, 1, 2)
    model = ready(kind)
    edited = parse(text)(model)
    reference = copy.deepcopy(model)
    blocks = adapt(reference).layers
    adapt(reference).set_layers_([copy.deepcopy(blocks[source]) for source in order])
    _set_depth(reference, kind, order)
    assert adapt(edited).shape.n_layers == len(order)
    assert torch.equal(logits(edited, kind), logits(reference, kind))
    assert not torch.allclose(logits(edited, kind), logits(model, kind), atol=1e-2)


def _set_depth(model, kind, order):
    if kind == "distilbert":
        model.config.n_layers = len(order)
    else:
        model.config.num_hidden_layers = len(order)
    if kind == "modernbert":
        model.config.layer_types = [model.config.layer_types[source] for source in order]


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_copies_are_untied(kind):
    model = ready(kind)
    edited = parse("duplicate(1)")(model)
    layers = adapt(edited).layers
    pointers = [p.data_ptr() for layer in layers for p in layer.parameters()]
    assert len(set(pointers)) == len(pointers)


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_hidden_states_of_copied_layers_are_captured(kind):
    """Capture hooks are installed at the first call; copies made afterwards must be seen too."""
    model = ready(kind)
    batch = tiny_batch(kind)
    with torch.no_grad():
        model(**batch, output_hidden_states=True)
        out = parse("duplicate(1-2)")(model)(**batch, output_hidden_states=True)
    assert len(out.hidden_states) == 6


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_switching_attention_reaches_copied_layers(kind):
    edited = parse("duplicate(1-2)")(ready(kind))
    if kind not in ONLY_EAGER:
        edited.set_attn_implementation("eager")
    with torch.no_grad():
        out = edited(**tiny_batch(kind), output_attentions=True)
    assert len(out.attentions) == 5
    assert all(found is not None for found in out.attentions)


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_edits_on_disjoint_parts_commute(kind):
    model = ready(kind)
    one, other = parse(disable_text(kind, "disable(1.2)")), parse("reinit(2, seed=5, std=0.3)")
    there, back = (one | other)(model), (other | one)(model)
    assert fingerprint(there) == fingerprint(back)


@pytest.mark.parametrize("kind", FAMILY_TYPES)
@pytest.mark.parametrize("how", ["uniform", "zero"])
def test_two_heads_in_one_edit_equal_one_after_the_other(kind, how):
    model = ready(kind)
    if how == "uniform" and kind not in UNIFORM:
        pytest.skip("its heads can't be made uniform")
    once = parse(f"disable(1.2, 2.0, how={how})")(model)
    twice = parse(f"disable(2.0, how={how}) | disable(1.2, how={how})")(model)
    assert fingerprint(once) == fingerprint(twice)


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_more_reinitialised_layers_contain_fewer(kind):
    model = ready(kind)
    fewer = adapt(parse("reinit(top=1, seed=7)")(model)).layers[2].state_dict()
    more = adapt(parse("reinit(top=2, seed=7)")(model)).layers[2].state_dict()
    assert all(torch.equal(fewer[name], more[name]) for name in fewer)


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_reinit_changes_the_six_projections_of_the_chosen_layers_and_nothing_else(kind):
    model = ready(kind)
    edited = parse("reinit(1, seed=0)")(model)
    family = adapt(model)
    chosen = {f"{family.layer_prefix(1)}.{part.path}.weight" for part in family.parts}
    before, after = model.state_dict(), edited.state_dict()
    assert {name for name in before if not torch.equal(before[name], after[name])} == chosen


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_reinit_of_all_parts_resets_biases_and_norms(kind):
    model = ready(kind)
    family = adapt(parse("reinit(1, seed=0, parts=all)")(model))
    for name, value in family.layers[1].named_parameters():
        if value.dim() == 1:
            assert bool((value == (0.0 if name.endswith("bias") else 1.0)).all()), name


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_randomize_draws_from_the_models_own_initialiser(kind):
    model = ready(kind)
    edited = parse("randomize(seed=4)")(model)
    reference = {}
    with torch.random.fork_rng():
        torch.manual_seed(4)
        reference = type(model)(copy.deepcopy(model.config)).state_dict()
    assert edited.state_dict().keys() == reference.keys()
    assert all(torch.equal(value, reference[name]) for name, value in edited.state_dict().items())
    assert (
        float(adapt(edited).word_embeddings.detach().std()) < 0.03
    )  # initializer_range is 0.02, not 0.3


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_heads_kept_tied_to_the_embeddings(kind):
    text = disable_text(kind, "randomize(seed=4) | duplicate(1) | disable(2.1)")
    edited = parse(text)(ready(kind))
    family = adapt(edited)
    tied = family.mlm_decoder().weight.data_ptr() == family.word_embeddings.data_ptr()
    assert tied == (kind != "eurobert")  # whose decoder is a matrix of its own


@pytest.mark.parametrize("kind", FREE)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("extend(2)", "expected extend(3) to extend(6)"),
        ("extend(7)", "expected extend(3) to extend(6)"),
        ("remove(3)", "layers 0 to 2"),
        ("disable(3.0)", "layers 0 to 2"),
        ("disable(0.4)", "heads 0 to 3"),
        ("reinit(top=4, seed=0)", "top must be at most 3"),
        ("remove(0-2)", "keep at least one"),
        ("unshare()", "share no layers"),
        ("duplicate(0, times=1000)", "at most 256"),
    ],
)
def test_edits_that_do_not_fit_are_refused_in_words(kind, text, reason):
    with pytest.raises(EditError) as caught:
        parse(text)(tiny_model(kind))
    assert reason in str(caught.value)
    assert str(caught.value).startswith(text.split("(")[0])


def test_each_edit_sees_the_model_left_by_the_edits_before_it():
    model = tiny_model("bert")
    edited = parse("duplicate(0) | remove(0) | disable(0.1)")(model)
    # Layer 0 was doubled and its first copy removed: what is disabled is base layer 0's head 1.
    assert fingerprint(edited) == fingerprint(parse("disable(0.1)")(model))


def test_no_edit_is_the_identity():
    model = tiny_model("bert")
    assert fingerprint(Edits()(model)) == fingerprint(model)
