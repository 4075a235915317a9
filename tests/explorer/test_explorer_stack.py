"""A stack and its edit say the same; what the page can't show is refused or kept as it is."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from microtome.edits import parse
from microtome.edits.depth import DepthRules
from microtome.errors import EditError
from microtome.explorer.stack import StackRules
from microtome.families import adapt
from microtome.surgery import apply
from support.tiny import tiny_model

N_LAYERS, N_HEADS = 4, 3
RULES = StackRules(N_LAYERS, N_HEADS, DepthRules())

orders = st.lists(st.integers(0, N_LAYERS - 1), min_size=1, max_size=2 * N_LAYERS)


@st.composite
def stacks(draw):
    order = draw(orders)
    places = st.tuples(st.integers(0, len(order) - 1), st.integers(0, N_HEADS - 1))
    return order, sorted(draw(st.sets(places)))


@given(stacks())
def test_a_stack_comes_back_from_its_edit(stack):
    order, disabled = stack
    edits, written = RULES.write(order, disabled)
    assert (list(written.order), list(written.disabled)) == (order, disabled)
    again, read = RULES.read(written.edit)
    assert (again, read) == (edits, written)
    assert not len(edits) or parse(written.edit).text == written.edit


@pytest.mark.parametrize(
    ("order", "disabled", "text"),
    [
        ([0, 1, 2, 3], [], ""),
        ([0, 1, 3], [(1, 2)], "remove(2) | disable(1.2)"),
        ([1], [], "keep(1)"),
        ([0, 1, 1, 2, 3], [], "duplicate(1)"),
        ([0, 0, 0, 1, 1, 1, 2, 3], [], "duplicate(0-1, times=2)"),
        ([0, 2, 1, 3], [], "order(0, 2, 1, 3)"),
        ([0, 1, 2, 3], [(2, 0), (2, 1), (2, 2)], "disable(2.*)"),
        ([0, 1, 2, 3], [(0, 1), (1, 1), (2, 1), (3, 1)], "disable(*.1)"),
    ],
)
def test_the_edit_of_a_stack_is_the_plainest(order, disabled, text):
    assert RULES.write(order, disabled)[1].edit == text


@pytest.mark.parametrize(
    "text",
    ["remove(2) | disable(1.3)", "disable(2.1) | order(2, 0, 2)", "duplicate(0-1) | disable(1.*)",
     "disable(1.0) | repeat(1-2) | remove(0)", "keep(1-2) | disable(*.2)"],
)  # fmt: skip
def test_the_stack_is_what_surgery_makes(text):
    """Position by position: the base's layer, with zero queries where a head is off, only there."""
    model = tiny_model("bert")
    family = adapt(model)
    rules = StackRules(family.shape.n_layers, family.shape.n_heads, family.depth_rules)
    edits, stack = rules.read(text)
    edited = adapt(apply(edits, model))
    assert edited.shape.n_layers == len(stack.order)
    for place, source in enumerate(stack.order):
        ours, theirs = edited.layers[place], family.layers[source]
        for head in range(family.shape.n_heads):
            rows = family.head_rows(head)
            query, base = (family.part("query").weight(each)[rows] for each in (ours, theirs))
            is_off = (place, head) in stack.disabled
            assert torch.equal(query, torch.zeros_like(base) if is_off else base)
        key, base_key = (family.part("key").weight(each) for each in (ours, theirs))
        assert torch.equal(key, base_key)


def test_edits_that_a_stack_can_not_show_come_first_and_stay():
    edits, stack = RULES.read("remove(0) | reinit(top=1, seed=3) | duplicate(1) | disable(0.2)")
    assert stack.other == ("remove(0)", "reinit(top=1, seed=3)")
    assert stack.order == (0, 1, 1, 2)  # of the three layers that remove(0) leaves
    assert stack.disabled == ((0, 2),)
    assert RULES.write(stack.order, stack.disabled, stack.other)[0] == edits


def test_a_head_that_is_silenced_is_no_disabled_one():
    _, stack = RULES.read("disable(1.2, how=zero)")
    assert (stack.other, stack.disabled) == (("disable(1.2, how=zero)",), ())


def test_shared_layers_are_counted():
    rules = StackRules(N_LAYERS, N_HEADS, DepthRules(shared=True))
    assert rules.read("extend(6)")[1].order == (0, 1, 2, 3, 4, 5)
    assert rules.write([0, 1, 2, 3, 4, 5], [])[1].edit == "extend(6)"
    assert rules.write([0, 1], [(0, 2), (1, 2)])[1].edit == "remove(2-3) | disable(*.2)"
    free = rules.read("unshare() | remove(1)")[1]
    assert (free.other, free.order) == (("unshare()",), (0, 2, 3))
    assert rules.write(free.order, [(0, 1)], free.other)[1].edit == (
        "unshare() | remove(1) | disable(0.1)"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vocabulary(/etc/hostname)", "reads a file"),
        ("remove(0) | vocabulary(x.txt) | remove(0)", "reads a file"),
        ("duplicate(0-3, times=2)", "would give 12 layers"),
        ("duplicate(0-3) | duplicate(0) | remove(0-4)", "would give 9 layers"),
        ("remove(0-3)", "remove all"),
        ("disable(4.0)", "no layer 4"),
        ("disable(0.3)", "no head 3"),
        (" | ".join(["disable(0.0)"] * 1000), "at most 4000 characters"),
    ],
)
def test_what_does_not_fit_is_refused(text, message):
    with pytest.raises(EditError, match=message):
        RULES.read(text)


@pytest.mark.parametrize(
    ("order", "disabled"), [([], []), ([4], []), ([0, 1], [(2, 0)]), ([0, 1], [(0, 3)])]
)
def test_a_stack_that_does_not_fit_is_refused(order, disabled):
    with pytest.raises(EditError):
        RULES.write(order, disabled)
