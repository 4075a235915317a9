"""The endpoints: their shapes, what cancels what, and that two pages don't mix."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from microtome.explorer.server import _watched
from microtome.explorer.session import Session
from microtome.explorer.work import Desk, Job
from support.explorer.client import PATIENCE, nothing_told

TEXT = "the cat sees a big red dog"
N_STEPS = 100 * PATIENCE  # of a score that is held up: one takes 10 ms


def test_the_page_and_its_files_are_served(client):
    page = client.get(f"/?token={client.door.token}", X_Microtome_Token=None)
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    assert client.get("/static/index.html", X_Microtome_Token=None).status == 200
    assert client.get("/static/nothing.js").json["error"]["message"]


def test_the_model_is_described(client, session):
    about = client.get("/api/model").json
    assert about == session.about()
    assert (about["job"], about["layers"], about["heads"]) == ("classification", 3, 4)
    assert (about["labels"], about["data"]["n"], about["data"]["primary"]) == (
        ["no", "yes"], 40, "accuracy",
    )  # fmt: skip


def test_an_edit_and_its_stack_are_the_same(client):
    edit = client.post("edit", {"edit": "remove( 1 )|disable(0.2)"}).json
    assert edit == {
        "edit": "remove(1) | disable(0.2)", "order": [0, 2], "disabled": [[0, 2]], "other": [],
        "layers": 2, "base_layers": 3, "problem": None,
    }  # fmt: skip
    stack = {name: edit[name] for name in ("order", "disabled", "other")}
    assert client.post("stack", stack).json == edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ("remove(", "position 8"),
        ("remove(7)", "no layer 7"),
        ("unshare()", "share no layers"),  # known only once it is applied
        ("vocabulary(/etc/passwd)", "reads a file"),
    ],
)
def test_a_wrong_edit_is_a_problem_to_show(client, edit, message):
    answer = client.post("edit", {"edit": edit})
    assert answer.status == 200
    assert message in answer.json["problem"]["message"]
    assert answer.json["order"] == []
    assert client.post("text", {"text": TEXT, "edit": edit}).status == 400
    assert client.post("score", {"edit": edit}).json["error"]["kind"] == "EditError"


def test_a_text_has_answers_before_and_after(client, session):
    given = {"text": TEXT, "pair": None, "edit": "remove(1)", "control": True}
    shown = client.post("text", given).json
    assert shown == session.text(TEXT, None, session.stacked("remove(1)")[0], control=True)
    assert shown["before"] != shown["after"]
    assert [each["label"] for each in shown["after"]] == ["no", "yes"]
    assert sum(each["share"] for each in shown["after"]) == pytest.approx(1)


def test_maps_are_bytes(client, session):
    answer = client.post("attention", {"text": TEXT, "edit": "remove(1)", "which": "after"})
    assert answer.headers["content-type"] == "application/octet-stream"
    shape = tuple(map(int, answer.headers["x-shape"].split(",")))
    expected, n_tokens = session.attention(
        TEXT, None, session.stacked("remove(1)")[0], "after", None
    )
    assert (shape, int(answer.headers["x-tokens"])) == (expected.shape, n_tokens)
    assert np.array_equal(np.frombuffer(answer.body, np.uint8).reshape(shape), expected)


def test_scores_are_listed_as_tried(client, session):
    page = client.other("tries")
    assert page.get("/api/tried").json == {"cuts": []}
    for edit in ("remove(1)", "", "remove( 1 )"):
        found = page.post("score", {"edit": edit}).json
    expected = session.score(session.stacked("remove(1)")[0], nothing_told)
    timed = ("seconds", "latency_ms")
    assert {k: v for k, v in found.items() if k not in timed} == {
        k: v for k, v in expected.items() if k not in timed
    }
    cuts = page.get("/api/tried").json["cuts"]
    assert [cut["edit"] for cut in cuts] == ["", "remove(1)"]  # the newest last, each once
    assert cuts[1]["score"] == found["now"]["value"]
    assert cuts[1]["change"] == found["change"]
    assert client.other("another").get("/api/tried").json == {"cuts": []}


def test_a_model_is_saved_with_its_certificate(client, session):
    answer = client.post("save", {"edit": "remove(1)", "folder": "served-cut"}).json
    assert answer["certificate"]["passed"]
    assert answer["out"] == str((session.request.out / "served-cut").resolve())
    assert (session.request.out / "served-cut" / "model.safetensors").is_file()
    again = client.post("save", {"edit": "remove(1)", "folder": "served-cut"})
    assert (again.status, again.json["error"]["kind"]) == (400, "RequestError")
    assert "not empty" in again.json["error"]["message"]


def test_rows_come_in_parts(client, session):
    assert client.get("/api/rows?start=2&count=3").json == session.rows(2, 3)
    for wrong in ("start=-1", "start=x", "count=0", "count=1e9", "start=99999999999999999999"):
        assert client.get(f"/api/rows?{wrong}").status == 400


def test_without_a_run_there_is_no_frontier(client):
    assert client.get("/api/frontier").json == {"cuts": []}
    assert client.get("/api/run").status == 400


@pytest.fixture
def slow_scores(monkeypatch):
    """Scores take until they are let go on, layer by layer; gives what is going on."""
    started, going_on = threading.Event(), threading.Event()
    whole = Session.score

    def slow(self, edits, step):
        for done in range(N_STEPS):
            step(done, N_STEPS)
            started.set()
            if going_on.wait(0.01):
                break
        return whole(self, edits, step)

    monkeypatch.setattr(Session, "score", slow)
    yield started, going_on
    going_on.set()


def test_a_newer_score_cancels_the_older_of_its_page_alone(client, slow_scores):
    started, going_on = slow_scores
    with ThreadPoolExecutor(3) as pool:
        older = pool.submit(client.post, "score", {"edit": "remove(0)"})
        assert started.wait(PATIENCE)
        progress = client.get("/api/progress").json
        assert (progress["running"], progress["edit"], progress["total"]) == (
            True, "remove(0)", N_STEPS,
        )  # fmt: skip
        assert client.other("two").get("/api/progress").json["running"] is False
        other = pool.submit(client.other("two").post, "score", {"edit": "remove(2)"})
        newer = pool.submit(client.post, "score", {"edit": "remove(1)"})
        assert older.result(PATIENCE).status == 409
        assert older.result().json["cancelled"] is True
        going_on.set()
        assert newer.result(PATIENCE).json["edit"] == "remove(1)"
        assert other.result(PATIENCE).json["edit"] == "remove(2)"
    assert [cut["edit"] for cut in client.other("two").get("/api/tried").json["cuts"]] == [
        "remove(2)"
    ]
    assert client.get("/api/progress").json["running"] is False


def test_a_text_does_not_wait_for_a_score(client, slow_scores):
    started, going_on = slow_scores
    with ThreadPoolExecutor(1) as pool:
        score = pool.submit(client.post, "score", {"edit": "remove(0)"})
        assert started.wait(PATIENCE)
        assert client.post("text", {"text": TEXT, "edit": "remove(0)"}).status == 200
        assert not score.done()
        going_on.set()
        assert score.result(PATIENCE).status == 200


def test_a_page_that_goes_away_takes_its_score_with_it(client, slow_scores):
    import http.client

    started, _ = slow_scores
    page = client.other("gone")
    connection = http.client.HTTPConnection(client.door.host, client.door.port)
    headers = {"X-Microtome-Token": client.door.token, "X-Microtome-Page": "gone"}
    connection.request("POST", "/api/score", b'{"edit": "remove(0)"}', headers)
    assert started.wait(PATIENCE)
    assert page.get("/api/progress").json["running"]
    connection.close()
    deadline = time.monotonic() + PATIENCE
    while page.get("/api/progress").json["running"] and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not page.get("/api/progress").json["running"]


def test_a_server_that_ends_ends_its_scores():
    """Else Ctrl-C would wait for the longest of them."""

    class Watching:
        async def is_disconnected(self):
            return False

    job, begun, ended = Job(), threading.Event(), threading.Event()

    def work():
        begun.set()
        while not job.called_off.wait(0.01):
            pass
        ended.set()
        job.check()

    async def serve():
        page = asyncio.ensure_future(_watched(Watching(), job, Desk().slow(job, work)))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        page.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await page

    asyncio.run(serve())
    assert ended.wait(PATIENCE)


def test_two_pages_at_once_get_their_own_answers(client, session):
    edits = ("remove(0)", "remove(1)", "remove(2)", "disable(1.*)")
    expected = {e: session.text(TEXT, None, session.stacked(e)[0])["after"] for e in edits}
    scores = {e: session.score(session.stacked(e)[0], nothing_told)["now"] for e in edits}
    assert len({str(each) for each in expected.values()}) == len(edits)

    def visit(edit: str) -> list[bool]:
        page, seen = client.other(edit), []
        for _ in range(6):
            seen.append(page.post("text", {"text": TEXT, "edit": edit}).json["after"])
            assert page.post("score", {"edit": edit}).json["now"] == scores[edit]
        return [after == expected[edit] for after in seen]

    with ThreadPoolExecutor(len(edits)) as pool:
        assert all(all(found) for found in pool.map(visit, edits))
