"""Edits are values: checked when they are made, compared by content, printed in one way."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import math
import pickle
import subprocess
import sys
import types

import pytest

from microtome import edits as package
from microtome.edits import (
    Disable,
    Duplicate,
    Edits,
    Extend,
    Keep,
    Order,
    Randomize,
    Reinit,
    Remove,
    Repeat,
    Unshare,
    catalogue,
)
from microtome.errors import EditError
from microtome.values import Head, HeadPattern


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (Extend(15), "extend(15)"),
        (Duplicate("0-2"), "duplicate(0-2)"),
        (Duplicate(5, "0-1", 2), "duplicate(0-2, 5)"),
        (Duplicate("0-2,5"), "duplicate(0-2, 5)"),
        (Duplicate(first=3), "duplicate(first=3)"),
        (Duplicate(last=3, times=1), "duplicate(last=3)"),
        (Duplicate(4, times=3), "duplicate(4, times=3)"),
        (Repeat("3-5"), "repeat(3-5)"),
        (Repeat(3, 4, 5), "repeat(3-5)"),
        (Remove(11, 10, 11), "remove(10-11)"),
        (Keep("0-5"), "keep(0-5)"),
        (Order(0, 1, 1, 2, 3), "order(0, 1, 1, 2, 3)"),
        (Order("0-1", "1-3"), "order(0, 1, 1, 2, 3)"),
        (Reinit(top=4), "reinit(top=4, seed=0)"),
        (Reinit(bottom=2, seed=7), "reinit(bottom=2, seed=7)"),
        (Reinit(7, 3, std=0.02, parts="weights"), "reinit(3, 7, seed=0)"),
        (Reinit(3, std=0.05, parts="all"), "reinit(3, seed=0, std=0.05, parts=all)"),
        (Reinit(3, std=0.0201), "reinit(3, seed=0, std=0.0201)"),
        (Reinit(3, std=1), "reinit(3, seed=0, std=1.0)"),
        (Randomize(), "randomize(seed=0)"),
        (Disable("3.7"), "disable(3.7)"),
        (Disable(Head(3, 7), how="uniform"), "disable(3.7)"),
        (Disable(HeadPattern(None, 7)), "disable(*.7)"),
        (Disable("5.0", "3.*", "5.0"), "disable(3.*, 5.0)"),
        (Disable("10.0", "9.11", "9.2"), "disable(9.2, 9.11, 10.0)"),
        (Disable("3.7", "3.*", "4.7", "*.7", "4.6"), "disable(3.*, 4.6, *.7)"),
        (Disable("*.*", "3.*", "*.7", "1.1"), "disable(*.*)"),
        (Disable("3.7", how="zero"), "disable(3.7, how=zero)"),
        (Unshare(), "unshare()"),
    ],
)
def test_canonical_text(edit, text):
    assert edit.text == str(edit) == text
    assert edit.hash == hashlib.sha256(text.encode()).hexdigest()


def examples():
    return [edit for form in catalogue() for text in form.examples for edit in package.parse(text)]


@pytest.mark.parametrize("edit", examples(), ids=str)
def test_an_edit_survives_copying_pickling_and_its_own_repr(edit):
    assert copy.deepcopy(edit) == edit
    assert pickle.loads(pickle.dumps(edit)) == edit
    assert eval(repr(edit), vars(package).copy()) == edit
    assert eval(repr(Edits(edit, edit)), vars(package).copy()) == Edits(edit, edit)


@pytest.mark.parametrize("edit", examples(), ids=str)
def test_an_edit_can_not_be_changed(edit):
    for field in dataclasses.fields(edit):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(edit, field.name, 1)


def test_different_kinds_with_the_same_layers_differ():
    assert len({Remove(1), Keep(1), Repeat(1), Duplicate(1), Order(1)}) == 5


@pytest.mark.parametrize(
    "make",
    [
        lambda: Extend(0),
        lambda: Extend(-3),
        lambda: Extend(10**9),
        lambda: Extend(10**5000),
        lambda: Extend(15.0),
        lambda: Extend("15"),
        lambda: Extend(True),
        lambda: Duplicate(),
        lambda: Duplicate(-1),
        lambda: Duplicate("-1"),
        lambda: Duplicate("5-3"),
        lambda: Duplicate(""),
        lambda: Duplicate(None),
        lambda: Duplicate(10_001),
        lambda: Duplicate(first=0),
        lambda: Duplicate(first=-1),
        lambda: Duplicate(last=0),
        lambda: Duplicate(3, first=3),
        lambda: Duplicate(first=3, last=3),
        lambda: Duplicate(4, times=0),
        lambda: Duplicate(4, times=10_001),
        lambda: Duplicate(4, 4),
        lambda: Duplicate("0-4", 2),
        lambda: Repeat(),
        lambda: Repeat(3, 5),
        lambda: Repeat(4, 3),
        lambda: Repeat(3, 3),
        lambda: Remove(),
        lambda: Keep(),
        lambda: Order(),
        lambda: Order(*["0-9999"] * 2),
        lambda: Reinit(),
        lambda: Reinit(3, top=4),
        lambda: Reinit(top=4, bottom=4),
        lambda: Reinit(top=0),
        lambda: Reinit(3, seed=-1),
        lambda: Reinit(3, seed=2**32),
        lambda: Reinit(3, seed=0.5),
        lambda: Reinit(3, std=0),
        lambda: Reinit(3, std=-0.02),
        lambda: Reinit(3, std=math.inf),
        lambda: Reinit(3, std=math.nan),
        lambda: Reinit(3, std=10**400),
        lambda: Reinit(3, std="0.02"),
        lambda: Reinit(3, std=True),
        lambda: Reinit(3, parts="biases"),
        lambda: Reinit(3, parts=None),
        lambda: Randomize(seed=-1),
        lambda: Disable(),
        lambda: Disable("3"),
        lambda: Disable("3.x"),
        lambda: Disable("-3.1"),
        lambda: Disable(3.7),
        lambda: Disable("3.7", how="mask"),
        lambda: Edits(Extend(3), "extend(3)"),
    ],
)
def test_what_is_wrong_without_a_model_is_refused_when_it_is_made(make):
    with pytest.raises(EditError) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_an_error_says_what_was_expected_and_what_it_got():
    with pytest.raises(EditError) as caught:
        Duplicate(4, times=0)
    assert caught.value.message == "times must be a whole number from 1 to 10000, got 0"


def test_reinit_finds_its_layers():
    assert Reinit(top=3).layers_in(12) == (9, 10, 11)
    assert Reinit(bottom=3).layers_in(12) == (0, 1, 2)
    assert Reinit(7, 3).layers_in(12) == (3, 7)
    assert set(Reinit(top=3).layers_in(12)) < set(Reinit(top=4).layers_in(12))
    with pytest.raises(EditError, match="top must be at most 12, the number of layers, got 13"):
        Reinit(top=13).layers_in(12)
    with pytest.raises(EditError, match="there is no layer 12"):
        Reinit(12).layers_in(12)


def test_disable_finds_its_heads_each_once():
    assert Disable("1.*", "*.0").heads_in(3, 2) == (Head(0, 0), Head(1, 0), Head(1, 1), Head(2, 0))
    assert len(Disable("*.*").heads_in(3, 2)) == 6
    with pytest.raises(EditError, match="there is no head 2"):
        Disable("0.2").heads_in(3, 2)
    with pytest.raises(EditError, match="there is no layer 3"):
        Disable("3.0").heads_in(3, 2)


def test_joining_flattens_and_is_associative():
    a, b, c = Unshare(), Extend(15), Disable("3.7")
    assert (a | b) | c == a | (b | c) == Edits(a, b, c) == Edits(Edits(a), Edits(b, c))
    assert list(a | b | c) == [a, b, c]
    assert len(a | b | c) == 3
    assert (a | b | c)[1] == b
    assert (a | b | c).text == "unshare() | extend(15) | disable(3.7)"
    assert hash(a | b) == hash(Edits(a, b))
    assert a | b != b | a


def test_one_edit_and_the_sequence_of_it_have_the_same_hash():
    assert Edits(Extend(15)).hash == Extend(15).hash


def test_only_edits_can_be_joined():
    for left, right in ((Extend(3), "extend(3)"), (Edits(), 3)):
        with pytest.raises(TypeError):
            left | right


def test_calling_edits_hands_the_whole_sequence_and_the_model_to_surgery(monkeypatch):
    surgery = types.ModuleType("microtome.surgery")
    surgery.apply = lambda edits, model: (edits, model)
    monkeypatch.setitem(sys.modules, "microtome.surgery", surgery)
    model = object()
    assert (Extend(15) | Disable("3.7"))(model) == (Edits(Extend(15), Disable("3.7")), model)
    assert Extend(15)(model) == (Edits(Extend(15)), model)


def test_the_exported_names_are_the_documented_ones():
    assert sorted(package.__all__) == [
        "DepthEdit",
        "Disable",
        "Duplicate",
        "Edit",
        "EditForm",
        "Edits",
        "Extend",
        "Keep",
        "Order",
        "Randomize",
        "Reinit",
        "Remove",
        "Repeat",
        "Unshare",
        "Vocabulary",
        "catalogue",
        "parse",
    ]


def test_edits_import_neither_torch_nor_numpy():
    heavy = ("torch", "numpy", "transformers")
    code = (
        "import sys, microtome.edits, microtome.values\n"
        "microtome.edits.parse('extend(15) | disable(3.7)')\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
