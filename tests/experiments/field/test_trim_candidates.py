"""Which layers may be kept: every subset of few, the usual shapes of many, by family."""

from __future__ import annotations

from itertools import chain, combinations, pairwise

import pytest

from microtome.edits import parse
from microtome.edits.depth import DepthRules
from microtome.experiments.field.trim.candidates import (
    candidates,
    deeper_sizes,
    healed_sizes,
    keeping,
    shapes,
    without_one,
)
from microtome.families import adapt
from microtome.surgery import apply
from support.tiny import FAMILY_TYPES, tiny_model

FREE = DepthRules()


def test_of_six_layers_every_proper_subset_is_tried():
    found = candidates(6, FREE, range(1, 6))
    subsets = chain.from_iterable(combinations(range(6), size) for size in range(1, 6))
    assert len(found) == 62
    assert {one.order for one in found} == set(subsets)
    assert [one.layers for one in found] == sorted(one.layers for one in found)


def test_only_the_sizes_that_were_asked_for():
    assert {one.layers for one in candidates(6, FREE, [4, 2])} == {2, 4}
    assert {one.layers for one in candidates(12, FREE, [5])} == {5}


def test_the_shapes_of_four_of_twelve_layers():
    assert shapes(12, 4) == [
        (0, 1, 2, 3),
        (8, 9, 10, 11),
        (0, 1, 10, 11),
        (0, 1, 2, 11),
        (0, 4, 7, 11),
        (0, 3, 6, 9),
        (2, 5, 8, 11),
    ]


@pytest.mark.parametrize("n_layers", [7, 12, 24])
def test_shapes_are_different_ascending_and_of_their_size(n_layers):
    for size in range(1, n_layers):
        found = shapes(n_layers, size)
        assert len(set(found)) == len(found)
        for kept in found:
            assert len(kept) == size
            assert list(kept) == sorted(set(kept))
            assert 0 <= kept[0] <= kept[-1] < n_layers
        assert tuple(range(size)) in found
        assert tuple(range(n_layers - size, n_layers)) in found


@pytest.mark.parametrize("family_type", FAMILY_TYPES)
def test_every_candidate_is_an_edit_that_can_be_applied(family_type):
    model = tiny_model(family_type, "none")
    stack = adapt(model).stack
    sizes = [*range(1, stack.n_layers), *deeper_sizes(stack.n_layers)]
    found = candidates(stack.n_layers, stack.rules, sizes)
    assert {one.layers for one in found} == {1, 2, 4, 5}
    for one in found:
        assert parse(one.edit).text == one.edit
        assert adapt(apply(parse(one.edit), model)).shape.n_layers == one.layers
    if family_type == "modernbert":
        assert all(one.order[0] == 0 and one.order.count(0) == 1 for one in found)
        assert {one.order for one in found if one.layers < 3} == {(0,), (0, 1), (0, 2)}
    elif family_type == "albert":
        assert [one.layers for one in found] == [1, 2, 4, 5]
    else:
        assert len([one for one in found if one.layers < 3]) == 6


def test_shared_layers_have_one_candidate_of_every_size():
    found = candidates(12, DepthRules(shared=True), range(1, 12))
    assert [one.order for one in found] == [(0,) * size for size in range(1, 12)]


def test_a_greedy_step_leaves_out_each_layer_once():
    found = without_one((0, 2, 3, 8), 9, FREE)
    assert [one.order for one in found] == [(2, 3, 8), (0, 3, 8), (0, 2, 8), (0, 2, 3)]
    first_stays = without_one((0, 2, 3), 9, DepthRules(first_copied=1))
    assert [one.order for one in first_stays] == [(0, 3), (0, 2)]
    assert without_one((4,), 9, FREE) == []
    assert keeping((1, 2), 4, DepthRules(first_copied=1)) is None


def test_deeper_tries_every_layer_twice_and_the_papers_rule():
    assert deeper_sizes(6) == (7, 9)
    assert deeper_sizes(2) == (3,)
    found = candidates(6, FREE, [7, 9])
    single = {tuple(sorted([*range(6), layer])) for layer in range(6)}
    assert {one.order for one in found if one.layers == 7} == single
    assert [one.order for one in found if one.layers == 9] == [(0, 0, 1, 1, 2, 2, 3, 4, 5)]


def test_at_most_five_sizes_are_healed_spread_over_all():
    assert healed_sizes([1, 2, 3, 4, 5], None) == [1, 2, 3, 4, 5]
    spread = healed_sizes(list(range(1, 12)), None)
    assert len(spread) == 5
    assert spread[0] == 1
    assert spread[-1] == 11
    gaps = [b - a for a, b in pairwise(spread)]
    assert max(gaps) - min(gaps) <= 1
    assert healed_sizes(list(range(1, 12)), [9, 3]) == [3, 9]
