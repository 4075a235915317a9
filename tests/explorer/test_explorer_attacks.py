"""What comes from elsewhere, or is too much, is refused before anything is computed."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import socket

import pytest
from starlette.requests import Request

from microtome.explorer.guard import MOST_BYTES, Body, Guard, TooLarge
from microtome.explorer.session import Session, SessionRequest
from microtome.tasks import DataSpec
from support.explorer.client import PATIENCE, running
from support.training_rows import checkpoint

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u2028\"'&"


def refused(answer, status: int = 403) -> str:
    assert answer.status == status
    error = answer.json["error"]
    assert error.keys() == {"kind", "message", "hint"}
    return error["message"]


@pytest.mark.parametrize("token", [None, "", "wrong", "é"])
def test_without_the_token_nothing_is_told(client, token):
    for path in ("/api/model", "/api/rows", "/api/nothing", "/openapi.json"):
        assert "token" in refused(client.get(path, X_Microtome_Token=token))
    assert "token" in refused(client.post("edit", {"edit": ""}, X_Microtome_Token=token))
    assert "token" in refused(client.get("/", X_Microtome_Token=client.door.token))
    assert "token" in refused(client.get("/?token=wrong"))
    in_query = client.get(f"/api/model?token={client.door.token}", X_Microtome_Token=None)
    assert "token" in refused(in_query)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[", "0.0.0.0", None]
)
def test_a_foreign_host_is_refused(client, host):
    assert client.get("/api/model", Host=host).status in (400, 403)  # without any: no HTTP/1.1
    if host:
        assert "host" in refused(client.get("/static/index.html", Host=host))


@pytest.mark.parametrize(
    ("bound", "host", "is_ours"),
    [
        ("127.0.0.1", "localhost:8000", True),
        ("127.0.0.1", "[::1]:8000", True),
        ("127.0.0.1", "192.168.0.7:8000", False),
        ("192.168.0.7", "192.168.0.7:8000", True),
        ("192.168.0.7", "192.168.0.8:8000", False),
        ("0.0.0.0", "192.168.0.7:8000", True),  # any address of this machine, by number
        ("0.0.0.0", f"{socket.gethostname()}:8000", True),
        ("0.0.0.0", "evil.example:8000", False),  # a name may be made to lead here
        ("::", "[fe80::1]:8000", True),
    ],
)
def test_a_host_is_ours_by_its_number_or_our_name(bound, host, is_ours):
    scope = {"type": "http", "path": "/static/x", "query_string": b"",
             "headers": [(b"host", host.encode())]}  # fmt: skip
    refusal = Guard(None, "token", bound)._refusal(scope)
    assert (refusal is None) == is_ours


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
    ],
)
def test_a_foreign_origin_is_refused(client, origin):
    origin = origin.format(port=client.door.port)
    assert "foreign page" in refused(client.post("edit", {"edit": ""}, Origin=origin))
    assert "foreign page" in refused(client.get("/api/model", Origin=origin))


def test_our_own_page_is_let_in(client):
    origin = f"http://127.0.0.1:{client.door.port}"
    assert client.post("edit", {"edit": ""}, Origin=origin).status == 200
    named = f"localhost:{client.door.port}"
    assert client.get("/api/model", Host=named, Origin=f"http://{named}").status == 200


def test_nothing_is_allowed_to_other_pages(client):
    for answer in (
        client.get("/api/model"),
        client.get("/static/index.html"),
        client.get(f"/?token={client.door.token}"),
        client.get("/api/nothing"),
        client.get("/api/model", X_Microtome_Token=None),
    ):
        headers = answer.headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"  # the address holds the token
        assert headers["x-frame-options"] == "DENY"
        assert "set-cookie" not in headers
        assert "access-control-allow-origin" not in headers
    asked = client.send("OPTIONS", "/api/edit", None, {"Origin": "http://evil.example"})
    assert asked.status == 403


@pytest.mark.parametrize(
    "folder",
    ["../out", "/out", "a/b", "a\\b", "..", ".", "", ".hidden", "-rf", "a\x00b", "a\nb",
     "~", "C:out", "x" * 101, "\u202egnp.exe"],
)  # fmt: skip
def test_a_folder_is_a_plain_name(client, session, folder):
    before = sorted(session.request.out.parent.rglob("*"))
    message = refused(client.post("save", {"edit": "remove(1)", "folder": folder}), 400)
    assert "plain name" in message
    assert sorted(session.request.out.parent.rglob("*")) == before


def test_a_link_is_not_followed_out_of_the_folder(client, session, tmp_path):
    (session.request.out / "link").symlink_to(tmp_path)
    refused(client.post("save", {"edit": "remove(1)", "folder": "link"}), 400)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "path", ["/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py",
             "/static//etc/passwd", "/static/", "/static/%00", "/../../etc/passwd"],
)  # fmt: skip
def test_only_the_page_is_served(client, path):
    answer = client.get(path)
    assert answer.status in (403, 404, 405)
    assert b"import" not in answer.body
    assert b"root:" not in answer.body


def test_a_body_of_100_megabytes_is_not_read(client):
    declared = client.send("POST", "/api/edit", b'{"edit": "', {"Content-Length": str(100_000_000)})
    assert "at most" in refused(declared, 413)
    whole = client.post("edit", {"edit": "x" * MOST_BYTES})
    refused(whole, 413)


def test_a_body_that_goes_on_is_cut_off(client):
    """Without a length: 100 MB in chunks are refused after the first of them."""
    chunk = b"%x\r\n%s\r\n" % (100_000, b"x" * 100_000)
    head = (
        f"POST /api/edit HTTP/1.1\r\nHost: 127.0.0.1:{client.door.port}\r\n"
        f"X-Microtome-Token: {client.door.token}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    n_sent = 0
    with socket.create_connection((client.door.host, client.door.port), PATIENCE) as connection:
        connection.sendall(head.encode())
        # The server closes while we send: whether that is a broken pipe or a reset is chance.
        with contextlib.suppress(ConnectionError):
            for _ in range(1000):
                connection.sendall(chunk)
                n_sent += 1
    assert n_sent < 1000
    assert client.get("/api/model").status == 200


def test_a_body_without_a_length_is_read_no_further_than_the_limit():
    part, n_read = b"x" * 100_000, 0

    async def receive():
        nonlocal n_read
        n_read += 1
        return {"type": "http.request", "body": part, "more_body": True}

    with pytest.raises(TooLarge):
        asyncio.run(Body.of(Request({"type": "http", "method": "POST"}, receive), "edit"))
    assert n_read == MOST_BYTES // len(part) + 1


@pytest.mark.parametrize("name", ["text", "pair"])
def test_a_text_of_a_million_characters_is_refused(client, name):
    given = {"text": "a", "edit": "", name: "a " * 400_000}
    assert "at most 20,000" in refused(client.post("text", given), 400)
    given |= {"which": "before"}
    assert "at most 20,000" in refused(client.post("attention", given), 400)
    assert client.post("text", {"text": "a" * 20_000, "edit": ""}).status == 200


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"edit"', b"\xff\xfe", b'{"edit": 1}', b'{"edit": null}', b"{}",
     b'{"edit": "", "more": 1}', b"[" * 100_000, b'{"edit": "\\ud800"}',
     b"1" * 10_000, b'{"edit": "\\u0000"}'],
)  # fmt: skip
def test_a_body_that_is_something_else_is_refused_in_words(client, body):
    answer = client.send("POST", "/api/score", body, {})
    assert refused(answer, 400)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Scripts in every string that model and data can carry."""
    root = tmp_path_factory.mktemp("hostile")
    labels = {0: f"no{HOSTILE}", 1: "yes"}
    model = checkpoint(root / "<b>model", "bert", "classification", id2label=labels,
                       label2id={name: i for i, name in labels.items()})  # fmt: skip
    rows = root / "<i>rows.csv"
    with rows.open("w", newline="") as stream:
        lines = [(f"{HOSTILE} {i}", labels[i % 2]) for i in range(8)]
        csv.writer(stream).writerows([("text", "label"), *lines])
    with running(Session(SessionRequest(str(model), DataSpec(path=rows), out=root))) as client:
        yield client


def test_hostile_strings_are_data(hostile):
    """They come as JSON that no browser takes for a page, and as they are: the page escapes."""
    answers = [
        hostile.get("/api/model"),
        hostile.get("/api/rows?start=0&count=5"),
        hostile.post("text", {"text": HOSTILE, "edit": "remove(1)"}),
        hostile.post("edit", {"edit": HOSTILE}),
        hostile.post("score", {"edit": "remove(1)"}),
        hostile.post("save", {"edit": "remove(1)", "folder": HOSTILE}),
        hostile.get(f"/api/{HOSTILE.encode().hex()}"),
    ]
    for answer in answers:
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert answers[1].json["rows"][0]["text"] == f"{HOSTILE} 0"
    assert HOSTILE in answers[0].json["labels"][0]
    assert HOSTILE in answers[2].json["after"][0]["label"]
