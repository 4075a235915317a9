"""Passes that share their beginnings give what single ones give, and compute less."""

from __future__ import annotations

import numpy as np
import pytest

from microtome.edits import parse
from microtome.errors import EditError
from microtome.explorer import passes
from microtome.explorer.passes import SharedPasses
from microtome.observe import Texts, forward, predict
from microtome.surgery import apply
from support.tiny import FAMILY_TYPES, VOCABULARY, tiny_model

EDITS = (
    "remove(2)", "disable(2.1)", "remove(1)", "remove(1) | disable(1.0)", "duplicate(2)",
    "disable(0.*)", "reinit(1, seed=3)", "reinit(1, seed=3) | disable(2.2)", "randomize(seed=1)",
    "order(0, 2, 1)", "keep(0-1)", "extend(5)", "disable(*.2)", "unshare() | remove(2)",
    "disable(2.1, how=zero)",
)  # fmt: skip


def texts(seed: int = 0) -> Texts:
    rng = np.random.default_rng(seed)
    lengths = [5, 2, 9, 9, 30, 70, 12]  # 70: more than the model has positions
    return Texts.of([rng.integers(10, VOCABULARY, size=n).tolist() for n in lengths])


@pytest.mark.parametrize("family", FAMILY_TYPES)
def test_every_edit_is_answered_as_by_itself(family):
    model, given = tiny_model(family, "classification"), texts()
    shared, n_tried = SharedPasses(model, given), 0
    for text in ("", *EDITS, *reversed(EDITS)):
        try:
            edited = apply(parse(text), model) if text else model
        except EditError:  # this family's: they are listed in docs/families.md
            continue
        n_tried += 1
        assert np.array_equal(shared.predict(edited), predict(edited, given)), text
    assert n_tried > 10


@pytest.mark.parametrize("head", ["token-classification", "question-answering"])
def test_answers_by_token_are_in_their_places(head):
    model, given = tiny_model("bert", head), texts()
    shared = SharedPasses(model, given)
    edited = apply(parse("remove(1)"), model)
    for each in (model, edited):
        assert np.array_equal(shared.predict(each), predict(each, given))


@pytest.fixture
def layers_computed(monkeypatch):
    """The layers that were computed, in their order."""
    computed = []
    whole = forward.layer_forward

    def counted(family, index, states, chunk):
        computed.append(index)
        return whole(family, index, states, chunk)

    monkeypatch.setattr(forward, "layer_forward", counted)
    return computed


def test_what_is_below_an_edit_is_not_computed_again(layers_computed):
    model = tiny_model("bert", "classification", num_hidden_layers=6)
    shared = SharedPasses(model, texts())
    computed_by = {}
    for text in ("", "remove(4)", "disable(2.1)", "disable(2.1) | remove(5)", "reinit(5, seed=0)"):
        layers_computed.clear()
        shared.predict(apply(parse(text), model) if text else model)
        computed_by[text] = list(layers_computed)
    # The last layer isn't among them: a classifier needs only its first tokens.
    assert computed_by == {
        "": [0, 1, 2, 3, 4], "remove(4)": [], "disable(2.1)": [2, 3, 4],
        "disable(2.1) | remove(5)": [], "reinit(5, seed=0)": [],
    }  # fmt: skip


def test_little_memory_keeps_some_depths_only(monkeypatch, layers_computed):
    model, given = tiny_model("bert", "classification", num_hidden_layers=6), texts()
    monkeypatch.setattr(passes, "BYTES_KEPT", 3 * 4 * len(given.ids) * 32)
    shared = SharedPasses(model, given)
    shared.predict(model)
    assert [sorted(kept) for kept in shared.base.states.values()] == [[0, 2, 4]]
    layers_computed.clear()
    edited = apply(parse("remove(3)"), model)
    answers = shared.predict(edited)
    assert layers_computed == [2, 3]  # from depth 2, up to which the models are alike at depth 3
    assert np.array_equal(answers, predict(edited, given))


def test_a_pass_that_is_ended_leaves_no_trace():
    model, given = tiny_model("bert", "classification"), texts()
    shared = SharedPasses(model, given)

    class Ended(Exception):
        pass

    def end(done, total):
        if done == 2:
            raise Ended

    edited = apply(parse("disable(0.1)"), model)
    for each in (model, edited, model, edited):
        with pytest.raises(Ended):
            shared.predict(each, end)
        assert np.array_equal(shared.predict(each), predict(each, given))
