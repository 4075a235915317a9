"""Depth edits are orders of layers: the laws of these orders, by arithmetic alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtome.edits import Duplicate, Extend, Keep, Order, Remove, Repeat
from microtome.errors import EditError

sizes = st.integers(1, 30)


def composed(first, second, n_layers):
    """The order of `second` after `first`, in layers of the first model."""
    middle = first.order(n_layers)
    return tuple(middle[i] for i in second.order(len(middle)))


@st.composite
def size_and_layers(draw):
    n_layers = draw(sizes)
    return n_layers, sorted(draw(st.sets(st.integers(0, n_layers - 1), min_size=1)))


@given(sizes)
def test_edits_that_change_nothing_give_the_identity_order(n_layers):
    everything = f"0-{n_layers - 1}"
    for edit in (Extend(n_layers), Keep(everything), Order(everything)):
        assert edit.order(n_layers) == tuple(range(n_layers))


@given(size_and_layers())
def test_duplicating_then_removing_the_copies_is_the_identity(case):
    n_layers, layers = case
    # The k-th duplicated layer stands k places further back, and its copy right behind it.
    copies = [layer + k + 1 for k, layer in enumerate(layers)]
    assert composed(Duplicate(*layers), Remove(*copies), n_layers) == tuple(range(n_layers))


@given(size_and_layers(), st.integers(1, 4))
def test_duplicate_adds_that_many_copies_of_each_layer_and_of_no_other(case, times):
    n_layers, layers = case
    order = Duplicate(*layers, times=times).order(n_layers)
    assert list(order) == sorted(order)
    for layer in range(n_layers):
        assert order.count(layer) == (1 + times if layer in layers else 1)


@given(sizes, st.data())
def test_extend_duplicates_the_first_layers_once(n_layers, data):
    extra = data.draw(st.integers(1, n_layers))
    order = Extend(n_layers + extra).order(n_layers)
    assert len(order) == n_layers + extra
    assert order == Duplicate(first=extra).order(n_layers)
    assert order == Duplicate(f"0-{extra - 1}").order(n_layers)


@given(sizes, st.data())
def test_duplicate_last_is_the_mirror_of_duplicate_first(n_layers, data):
    count = data.draw(st.integers(1, n_layers))
    first = Duplicate(first=count).order(n_layers)
    mirrored = tuple(n_layers - 1 - layer for layer in reversed(first))
    assert Duplicate(last=count).order(n_layers) == mirrored


@given(size_and_layers())
def test_keep_and_remove_complement_each_other(case):
    n_layers, layers = case
    kept = Keep(*layers).order(n_layers)
    others = [layer for layer in range(n_layers) if layer not in layers]
    assert kept == tuple(layers)
    if others:
        assert Remove(*others).order(n_layers) == kept


@given(sizes, st.data())
def test_repeating_a_block_then_removing_it_is_the_identity(n_layers, data):
    first = data.draw(st.integers(0, n_layers - 1))
    last = data.draw(st.integers(first, n_layers - 1))
    size = last - first + 1
    second_time = f"{last + 1}-{last + size}"
    edit = Repeat(f"{first}-{last}")
    assert composed(edit, Remove(second_time), n_layers) == tuple(range(n_layers))
    order = edit.order(n_layers)
    assert order[first : last + 1] == order[last + 1 : last + 1 + size]


def test_the_orders_that_the_papers_draw():
    assert Extend(15).order(12) == (0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
    assert Duplicate("0-2").order(4) == (0, 0, 1, 1, 2, 2, 3)
    assert Duplicate(4, times=3).order(6) == (0, 1, 2, 3, 4, 4, 4, 4, 5)
    assert Repeat("3-5").order(7) == (0, 1, 2, 3, 4, 5, 3, 4, 5, 6)
    assert Remove("10-11").order(12) == tuple(range(10))
    assert Keep(5, 0, 3).order(6) == (0, 3, 5)
    assert Order(3, 0, 0).order(4) == (3, 0, 0)


@pytest.mark.parametrize("edit", [Duplicate(12), Repeat(12), Remove(12), Keep(12), Order(0, 12)])
def test_a_layer_outside_of_the_model_is_named(edit):
    with pytest.raises(EditError) as caught:
        edit.order(12)
    assert caught.value.message == "there is no layer 12: the model has layers 0 to 11"


@pytest.mark.parametrize("count", [11, 25])
def test_extend_goes_from_n_to_twice_n(count):
    assert len(Extend(24).order(12)) == 24
    with pytest.raises(EditError, match=r"expected extend\(12\) to extend\(24\)"):
        Extend(count).order(12)


def test_at_least_one_layer_stays():
    with pytest.raises(EditError, match="would remove all 3 layers"):
        Remove("0-2").order(3)


def test_more_layers_at_one_end_than_there_are_is_refused():
    for edit in (Duplicate(first=4), Duplicate(last=4)):
        with pytest.raises(EditError, match="must be at most 3, the number of layers, got 4"):
            edit.order(3)


def test_an_absurd_number_of_copies_is_refused():
    with pytest.raises(EditError, match="would give 20002 layers; at most 10000 are possible"):
        Duplicate("0-1", times=10_000).order(2)


# ModernBERT: layer 0 stays first and single.


def test_extend_starts_at_the_first_layer_that_may_be_copied():
    assert Extend(6).order(4, first_copied=1) == (0, 1, 1, 2, 2, 3)
    assert Extend(4).order(4, first_copied=1) == (0, 1, 2, 3)
    assert Extend(7).order(4, first_copied=1) == (0, 1, 1, 2, 2, 3, 3)
    with pytest.raises(EditError, match=r"expected extend\(4\) to extend\(7\)"):
        Extend(8).order(4, first_copied=1)


@pytest.mark.parametrize(
    "edit",
    [
        Duplicate(0),
        Duplicate(first=1),
        Repeat("0-1"),
        Remove(0),
        Keep("1-3"),
        Order(1, 0, 2),
        Order(0, 1, 0),
    ],
)
def test_a_fixed_layer_is_neither_copied_nor_moved_nor_removed(edit):
    edit.order(4)
    with pytest.raises(EditError, match="would copy, move or remove layer 0"):
        edit.order(4, first_copied=1)


@pytest.mark.parametrize(
    "edit", [Duplicate(1), Duplicate(last=3), Repeat("1-2"), Remove("1-3"), Keep(0), Order(0, 3, 1)]
)
def test_edits_of_the_other_layers_are_free(edit):
    assert edit.order(4, first_copied=1) == edit.order(4)


# ALBERT: all layers share their weights, only their number counts.


def test_where_layers_are_shared_only_their_number_counts():
    assert Extend(50).count(12) == 50
    assert Duplicate(first=3, times=2).count(12) == 18
    assert Remove("10-11").count(12) == 10
    with pytest.raises(EditError, match="would give 65 layers; 1 to 64 are possible"):
        Extend(65).count(12)
    with pytest.raises(EditError, match="would give 0 layers; 1 to 64 are possible"):
        Remove("0-11").count(12)
