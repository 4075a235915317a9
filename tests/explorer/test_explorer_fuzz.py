"""Whatever a request holds, the answer is what was asked for or an error in words, never a 500."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from microtome.explorer.server import GETS, POSTS
from microtome.explorer.session import Session, SessionRequest
from support.explorer.client import running
from support.trimming.cases import FAMILIES, case

junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
numbers = st.integers(-2, 8)
pieces = st.sampled_from(
    ["remove", "keep", "order", "disable", "duplicate", "repeat", "extend", "reinit", "randomize",
     "unshare", "vocabulary", "(", ")", "0", "1", "2", "0-1", "1.2", "*.1", "2.*", "top=1",
     "seed=1", "how=zero", "times=2", ",", " | ", " "]
)  # fmt: skip
edits = (
    st.lists(pieces, max_size=12).map("".join)
    | st.sampled_from(
        ["", "remove(1)", "disable(0.1)", "extend(6)", "reinit(1, seed=0)", "keep(2)"]
    )
    | st.text(max_size=30)
)
texts = st.text(max_size=60) | st.sampled_from(["the cat", "[MASK] cat", "\x00", "\ud800", "  "])
folders = st.text(alphabet="./\\ab~ ", max_size=6).map(lambda name: name + "/")  # never a good one
FIELDS = {
    "edit": edits,
    "text": texts,
    "pair": st.none() | texts,
    "control": st.booleans(),
    "which": st.sampled_from(["before", "after", "second", "x"]),
    "layer": st.none() | numbers,
    "head": st.none() | numbers,
    "order": st.lists(numbers, max_size=9),
    "disabled": st.lists(st.lists(numbers, min_size=1, max_size=3), max_size=4)
    | st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=2), max_size=4),
    "other": st.lists(edits, max_size=2),
    "folder": folders,
}
SCHEMAS = {
    "edit": ("edit",),
    "stack": ("order", "disabled", "other"),
    "text": ("text", "pair", "edit", "control"),
    "attention": ("text", "pair", "edit", "which", "layer", "head"),
    "score": ("edit",),
    "save": ("edit", "folder"),
}


def test_every_endpoint_is_tried():
    assert set(SCHEMAS) == set(POSTS)


@st.composite
def bodies(draw, fields):
    """A body of the right shape, with a wrong value here and there, or a field less or more."""
    body = {name: draw(FIELDS[name]) for name in fields}
    change = draw(st.sampled_from(["none", "none", "none", "wrong", "less", "more", "junk"]))
    name = draw(st.sampled_from(fields))
    if change == "wrong":
        body[name] = draw(junk)
    elif change == "less":
        del body[name]
    elif change == "more":
        body[draw(st.text(max_size=5))] = draw(junk)
    return draw(junk) if change == "junk" else body


def check(answer):
    assert answer.status in (200, 400, 403, 404, 405, 409, 413, 422), answer.body
    if answer.status != 200:
        error = answer.json["error"]
        assert error.keys() == {"kind", "message", "hint"}
        assert error["message"]


@pytest.mark.parametrize("name", POSTS)
def test_a_post_is_answered_or_refused(client, name):
    @settings(max_examples=150, suppress_health_check=list(HealthCheck))
    @given(bodies(SCHEMAS[name]))
    def tried(body):
        check(client.send("POST", f"/api/{name}", json.dumps(body).encode(), {}))

    tried()


def test_a_get_is_answered_or_refused(client):
    @settings(max_examples=150, suppress_health_check=list(HealthCheck))
    @given(
        st.sampled_from([*GETS, *POSTS, "", "x"]),
        st.lists(
            st.tuples(st.sampled_from(["start", "count", "x"]), st.text(st.characters(
                min_codepoint=48, max_codepoint=122), max_size=12)), max_size=3,
        ),
        st.sampled_from(["GET", "HEAD", "PUT", "DELETE", "PATCH"]),
    )  # fmt: skip
    def tried(name, query, method):
        asked = "&".join(f"{key}={value}" for key, value in query)
        answer = client.send(method, f"/api/{name}?{asked}", None, {})
        assert answer.status < 500, answer
        if method == "GET":
            check(answer)

    tried()


@pytest.mark.parametrize("job", sorted(set(FAMILIES) - {"classification"}))
def test_every_job_answers_or_refuses(job, tmp_path):
    session = Session(SessionRequest(str(case(job, tmp_path)[0]), out=tmp_path))
    with running(session) as client:

        @settings(max_examples=30, suppress_health_check=list(HealthCheck))
        @given(bodies(SCHEMAS["text"]), bodies(SCHEMAS["attention"]))
        def tried(text, attention):
            check(client.post("text", text))
            check(client.post("attention", attention))

        tried()


@settings(max_examples=100)
@given(st.binary(max_size=200))
def test_bytes_are_answered_or_refused(client, data):
    for name in ("edit", "text"):
        check(client.send("POST", f"/api/{name}", data, {}))
