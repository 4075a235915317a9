"""Patched states against plain transformers with hooks, in every family; laws of patching."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from microtome.experiments.field.patching.questions import Questions
from microtome.experiments.field.patching.states import Patch, patched_values
from microtome.families import adapt
from microtome.observe.forward import bound
from microtome.observe.texts import Texts
from support.tiny import FAMILY_TYPES, N_LAYERS, VOCABULARY, tiny_model

LENGTHS, CHANGED, MASKED = (9, 6), (4, 2), (6, 3)
CASES = [(family, head) for family in FAMILY_TYPES for head in ("classification", "mlm")]
DEPTHS = range(N_LAYERS + 1)


@cache
def model_of(family, head):
    return tiny_model(family, head)


def random_pairs():
    """Two pairs of different lengths whose texts differ in one token each."""
    rng = np.random.default_rng(3)
    clean = [rng.integers(5, VOCABULARY, length).tolist() for length in LENGTHS]
    corrupted = [list(ids) for ids in clean]
    for ids, place in zip(corrupted, CHANGED, strict=True):
        ids[place] = 5 + (ids[place] - 5 + 40) % (VOCABULARY - 5)
    return clean, corrupted


def questions_for(head):
    plus, minus = ([0, 1], [1, 0]) if head == "classification" else ([11, 23], [40, 57])
    masked = [-1, -1] if head == "classification" else MASKED
    return Questions(*(np.array(part) for part in (plus, minus, masked)), np.ones(2))


def measured(model, head, patches, clean=None, corrupted=None, **settings):
    texts = random_pairs() if clean is None else (clean, corrupted)
    return patched_values(
        bound(model), *map(Texts.of, texts), questions_for(head), patches, **settings
    )


def answered(model, head, ids, number):
    """The value of the question of pair ``number``, by plain transformers."""
    asked = questions_for(head)
    logits = model(input_ids=torch.tensor([ids])).logits[0]
    if head == "mlm":
        logits = logits[MASKED[number]]
    return float(logits[asked.plus[number]] - logits[asked.minus[number]])


class Hooked:
    """The layers of a plain model: keeps what goes into each, and puts states there."""

    def __init__(self, model):
        self.called, self.kept, self.given = 0, {}, {}
        # ALBERT calls one module at every depth, so calls are counted.
        self.hooks = [
            hook
            for layer in {id(layer): layer for layer in adapt(model).layers}.values()
            for hook in (
                layer.register_forward_pre_hook(self.before, with_kwargs=True),
                layer.register_forward_hook(self.after),
            )
        ]

    def at(self, depth, states):
        self.kept[depth] = states.detach().clone()
        if depth in self.given:
            states = states.clone()
            position, state = self.given[depth]
            states[0, position] = state
        return states

    def before(self, module, args, kwargs):
        if self.called:
            return None
        if args:
            return (self.at(0, args[0]), *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": self.at(0, kwargs["hidden_states"])}

    def after(self, module, args, out):
        self.called += 1
        if isinstance(out, tuple):
            return (self.at(self.called, out[0]), *out[1:])
        return self.at(self.called, out)

    def run(self, model, head, ids, number, given=None):
        self.called, self.kept, self.given = 0, {}, given or {}
        return answered(model, head, ids, number)


@pytest.mark.parametrize(("family", "head"), CASES)
@torch.no_grad()
def test_every_patch_is_what_transformers_gives_with_the_state_replaced(family, head):
    model = model_of(family, head)
    patches = [
        Patch(number, (position,))
        for number, length in enumerate(LENGTHS)
        for position in sorted({0, 1, CHANGED[number], MASKED[number], length - 1})
    ]
    found = measured(model, head, patches)
    hooked = Hooked(model)
    expected = np.empty((N_LAYERS + 1, len(patches)))
    for number, (clean, corrupted) in enumerate(zip(*random_pairs(), strict=True)):
        assert found.clean[number] == pytest.approx(
            hooked.run(model, head, clean, number), rel=1e-3, abs=1e-3
        )
        states = hooked.kept
        assert set(states) == set(DEPTHS)
        for column, patch in enumerate(patches):
            if patch.pair != number:
                continue
            (position,) = patch.positions
            for depth in DEPTHS:
                given = {depth: (position, states[depth][0, position])}
                expected[depth, column] = hooked.run(model, head, corrupted, number, given)
        assert found.corrupted[number] == pytest.approx(
            hooked.run(model, head, corrupted, number), rel=1e-3, abs=1e-3
        )
    for hook in hooked.hooks:
        hook.remove()
    assert found.values == pytest.approx(expected, rel=1e-3, abs=1e-3)
    assert np.abs(expected - found.corrupted[[patch.pair for patch in patches]]).max() > 0.1


@pytest.mark.parametrize(("family", "head"), CASES)
def test_the_laws_of_patching(family, head):
    model = model_of(family, head)
    whole = [Patch(number, tuple(range(length))) for number, length in enumerate(LENGTHS)]
    single = [Patch(n, (p,)) for n, length in enumerate(LENGTHS) for p in range(length)]
    found = measured(model, head, [*whole, *single])
    assert np.abs(found.clean - found.corrupted).max() > 0.05
    # All positions: the clean run, at every depth.
    assert found.values[:, :2] == pytest.approx(np.tile(found.clean, (N_LAYERS + 1, 1)), abs=1e-3)
    pairs, places = (
        np.array(part) for part in zip(*((p.pair, *p.positions) for p in single), strict=True)
    )
    # At depth 0 only the changed token differs.
    is_changed = places == np.array(CHANGED)[pairs]
    first = np.where(is_changed, found.clean[pairs], found.corrupted[pairs])
    assert found.values[0, 2:] == pytest.approx(first, abs=1e-3)
    # At the last depth only what the head reads counts.
    if head == "mlm" or adapt(model).reads == "first":
        is_read = places == (np.array(MASKED)[pairs] if head == "mlm" else 0)
        last = np.where(is_read, found.clean[pairs], found.corrupted[pairs])
        assert found.values[-1, 2:] == pytest.approx(last, abs=1e-3)
    one_by_one = measured(model, head, [*whole, *single], tokens_in_flight=1)
    assert one_by_one.values == pytest.approx(found.values, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("head", ["classification", "mlm"])
def test_a_state_put_into_itself_changes_nothing(head):
    model, (_, corrupted) = tiny_model("bert", head), random_pairs()
    patches = [Patch(n, (p,)) for n, length in enumerate(LENGTHS) for p in range(length)]
    found = measured(model, head, patches, corrupted, corrupted)
    expected = [found.corrupted[patch.pair] for patch in patches]
    assert (found.values == np.array(expected)).all()
    assert np.isnan(found.shares(patches)).all()  # there is nothing to restore
