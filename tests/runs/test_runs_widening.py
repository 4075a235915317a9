"""Which requests continue which: equal ones and wider ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtome import requests
from microtome.requests import widens


def differences(old, new):
    return requests.differences(old, new, continues=widens)


OLD = {"model": "nano-bert", "seeds": [0, 1], "layers": "12-16", "options": {"epochs": 3}}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"seeds": [0, 1, 2]},
        {"seeds": [2, 1, 0]},
        {"layers": "10-18"},
        {"layers": "12-14,15,16,20"},
        {"new": None},
    ],
)
def test_equal_and_wider_requests_go_on(change):
    assert differences(OLD, {**OLD, **change}) == []


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"model": "mine"}, 'model: "nano-bert" stored, "mine" requested'),
        ({"seeds": [0]}, "seeds: [0,1] stored, [0] requested"),
        ({"seeds": 0}, "seeds: [0,1] stored, 0 requested"),
        ({"layers": "12-15"}, 'layers: "12-16" stored, "12-15" requested'),
        ({"options": {"epochs": 4}}, "options.epochs: 3 stored, 4 requested"),
        ({"limit": 10}, "limit: nothing stored, 10 requested"),
    ],
)
def test_a_different_request_is_told_key_by_key(change, line):
    assert differences(OLD, {**OLD, **change}) == [line]


def test_every_difference_is_told():
    assert len(differences(OLD, {"model": "x", "seeds": [5], "layers": "1", "options": None})) == 4


def test_ordered_things_written_as_text_do_not_widen():
    assert differences({"edits": "extend(15)"}, {"edits": "extend(15) | reinit(top=1, seed=0)"})
    assert differences({"seed": "1"}, {"seed": "2"})
    assert differences({"number": "10"}, {"number": "11"})


@given(st.sets(st.integers()), st.sets(st.integers()))
def test_a_list_goes_on_exactly_when_it_contains_the_old_one(old, new):
    assert (differences({"seeds": sorted(old)}, {"seeds": list(new)}) == []) == (old <= new)
