"""Laws of the trial's hash and of the seeds that come from it."""

from __future__ import annotations

import hashlib
import json
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtome.errors import RequestError
from microtome.runs import Trial, seed_for

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # Half characters (surrogates) are legal in Python and turn up in hostile text.
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
REQUESTS = st.dictionaries(st.text(max_size=5), JSON, max_size=4)


@given(REQUESTS)
def test_the_hash_is_sha256_over_function_request_content_and_needs(request):
    trial = Trial("a.b:c", request, content={"model": "00ff"}, needs=["1", "2"])
    covered = json.dumps(
        ["a.b:c", request, {"model": "00ff"}, ["1", "2"]], sort_keys=True, separators=(",", ":")
    )
    assert trial.hash == hashlib.sha256(covered.encode()).hexdigest()[:32]


def test_the_hash_covers_the_logical_name_and_not_where_the_function_is():
    here = Trial("lab.one:measure", {"seed": 1}, name="lengths.measure")
    moved = Trial("lab.two:count", {"seed": 1}, name="lengths.measure")
    assert here.hash == moved.hash
    assert here.hash != Trial("lab.one:measure", {"seed": 1}, name="lengths.other").hash
    assert Trial("lab.one:measure").name == "lab.one:measure"
    with pytest.raises(RequestError, match="a trial's name"):
        Trial("lab.one:measure", name="two words")


@given(REQUESTS, REQUESTS)
def test_different_requests_have_different_hashes_and_equal_ones_equal(first, second):
    same = json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    assert (Trial("m:f", first).hash == Trial("m:f", second).hash) == same


def test_paths_labels_limits_and_resources_do_not_change_the_hash():
    plain = Trial("m:f", {"seed": 1}, content={"model": "ab"})
    dressed = Trial(
        "m:f",
        {"seed": 1},
        content={"model": "ab"},
        where={"model": "/elsewhere"},
        columns={"model": "mine"},
        label="for people",
        limit=3.0,
        gpus=1,
        cpus=4,
    )
    assert dressed.hash == plain.hash


@pytest.mark.parametrize(
    "other",
    [
        Trial("m:g", {"seed": 1}, content={"model": "ab"}),
        Trial("m:f", {"seed": 2}, content={"model": "ab"}),
        Trial("m:f", {"seed": 1}, content={"model": "ac"}),
        Trial("m:f", {"seed": 1}, content={"model": "ab"}, needs=["x"]),
    ],
)
def test_what_decides_the_number_changes_the_hash(other):
    assert other.hash != Trial("m:f", {"seed": 1}, content={"model": "ab"}).hash


def test_a_trial_keeps_its_own_copy_of_the_request():
    request = {"layers": [1, 2]}
    trial = Trial("m:f", request)
    request["layers"].append(3)
    assert trial.request == {"layers": [1, 2]}
    assert trial == Trial("m:f", {"layers": (1, 2)})
    assert pickle.loads(pickle.dumps(trial)) == trial
    assert len({trial, Trial("m:f", {"layers": [1, 2]})}) == 1


@pytest.mark.parametrize("bad", [{"x": float("nan")}, {"x": object()}, {"x": {1, 2}}, [1]])
def test_a_request_that_is_not_json_is_refused(bad):
    with pytest.raises(RequestError, match="request must be"):
        Trial("m:f", bad)


@pytest.mark.parametrize(
    "name", ["function", "a.b", "a:b:c", ":f", "m:", "m:f; import os", "a b:c"]
)
def test_a_function_is_written_module_colon_function(name):
    with pytest.raises(RequestError, match="module:function"):
        Trial(name)


@pytest.mark.parametrize("limit", [0, -1.0, float("nan"), float("inf")])
def test_a_limit_is_a_number_of_seconds(limit):
    with pytest.raises(RequestError, match="limit"):
        Trial("m:f", limit=limit)


def test_seeds_differ_by_name_and_trial_and_fit_every_generator():
    trials = [Trial("m:f", {"seed": seed}) for seed in range(50)]
    seeds = [seed_for(trial, name) for trial in trials for name in ("init", "data", "dropout")]
    assert len(set(seeds)) == 150
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_seeds_and_hashes_are_the_same_in_another_process():
    code = (
        "from microtome.runs import Trial, seed_for;"
        "t = Trial('m:f', {'b': 1, 'a': {'z', 'y'} and ['y']}); print(t.hash, seed_for(t, 'init'))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    trial = Trial("m:f", {"a": ["y"], "b": 1})
    assert answer.stdout.split() == [trial.hash, str(seed_for(trial, "init"))]
