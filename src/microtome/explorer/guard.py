"""Who may ask: this page, in this browser, on this machine; and how much."""

from __future__ import annotations

import hmac
import ipaddress
import json
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from microtome.errors import RequestError

MOST_BYTES = 1_000_000
MOST_DISCARDED = 10 * MOST_BYTES
LONGEST_TEXT = 20_000
TOKEN = "x-microtome-token"  # noqa: S105 - the name of a header
PAGE = "x-microtome-page"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
ANYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",  # the address holds the token
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def error_response(status: int, kind: str, message: str, hint: str = "") -> JSONResponse:
    """An error in the shape that the command line prints."""
    document: dict[str, Any] = {"error": {"kind": kind, "message": message, "hint": hint}}
    if status == 409:
        document["cancelled"] = True
    return JSONResponse(document, status)


@dataclass(frozen=True)
class Guard:
    """Lets a request through to ``app`` if host, origin and token are right."""

    app: ASGIApp
    token: str
    host: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with the headers that keep the page to itself."""
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refused = self._refusal(scope)
        if refused is not None and refused.status_code == 413:
            await _discard(scope, receive)
        await (refused or self.app)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._is_ours(host):
            return error_response(403, "Forbidden", "the request names a foreign host")
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return error_response(403, "Forbidden", "the request comes from a foreign page")
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and origin is not None:
            return error_response(403, "Forbidden", "the request comes from a foreign page")
        if not self._has_token(scope, headers):
            hint = "open the address that microtome explore printed"
            return error_response(403, "Forbidden", "the token is missing or wrong", hint)
        length = headers.get("content-length", "0")
        if not length.isdigit() or len(length) > 9 or int(length) > MOST_BYTES:
            return too_large()
        return None

    def _is_ours(self, host: str) -> bool:
        """Whether the page was asked for by a name of this machine: another one may be a trap."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in (*LOOPBACK, self.host):
            return True
        if self.host not in ANYWHERE:
            return False
        if name == socket.gethostname().lower():
            return True
        try:
            return bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    def _has_token(self, scope: Scope, headers: Headers) -> bool:
        path = scope["path"]
        if path.startswith("/static/"):
            return True
        given = headers.get(TOKEN, "")
        if path == "/":
            query = parse_qs(scope["query_string"].decode("latin-1"))
            given = query.get("token", [""])[-1]
        return hmac.compare_digest(given.encode(), self.token.encode())


async def _discard(scope: Scope, receive: Receive) -> None:
    """Read a body that is only somewhat too large: a page that is still sending gets no answer."""
    length = Headers(scope=scope).get("content-length", "")
    if not length.isdigit() or len(length) > 9 or int(length) > MOST_DISCARDED:
        return
    while (message := await receive())["type"] == "http.request":
        if not message.get("more_body", False):
            return


def too_large() -> JSONResponse:
    """The answer to a body that nobody would type."""
    answer = error_response(413, "RequestError", f"a request has at most {MOST_BYTES:,} bytes")
    answer.headers["connection"] = "close"
    return answer


class TooLarge(Exception):
    """A body that is longer than the limit."""


class Body:
    """The fields of a request, each read by its type; what isn't asked for is refused."""

    def __init__(self, fields: dict[str, Any], known: tuple[str, ...]) -> None:
        if unknown := sorted(set(fields) - set(known)):
            raise RequestError(f"unknown field {unknown[0][:80]!r}", f"fields: {', '.join(known)}")
        self.fields = fields

    @classmethod
    async def of(cls, request: Request, *known: str) -> Body:
        """Read a body of JSON, no further than the limit."""
        data = bytearray()
        async for part in request.stream():
            data += part
            if len(data) > MOST_BYTES:
                raise TooLarge
        try:
            fields = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise RequestError("expected a JSON object, got something else") from error
        if not isinstance(fields, dict):
            raise RequestError("expected a JSON object, got something else")
        return cls(fields, known)

    def text(self, name: str, *, most: int = LONGEST_TEXT) -> str:
        """A text that is there, of at most so many characters."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise RequestError(f"{name} must be a text")
        if len(value) > most:
            raise RequestError(f"{name} must have at most {most:,} characters, got {len(value):,}")
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise RequestError(f"{name} must be Unicode text, got half a character")
        return value

    def optional_text(self, name: str) -> str | None:
        """A text, or None."""
        return None if self.fields.get(name) is None else self.text(name)

    def flag(self, name: str) -> bool:
        """True or false; false where it isn't there."""
        value = self.fields.get(name, False)
        if not isinstance(value, bool):
            raise RequestError(f"{name} must be true or false")
        return value

    def number(self, name: str) -> int | None:
        """A whole number from 0, or None."""
        value = self.fields.get(name)
        return None if value is None else _index(value, name)

    def numbers(self, name: str) -> list[int]:
        """A list of whole numbers from 0."""
        return [_index(value, name) for value in self._list(name)]

    def pairs(self, name: str) -> list[tuple[int, int]]:
        """A list of pairs of whole numbers from 0."""
        pairs = self._list(name)
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise RequestError(f"{name} must be pairs of numbers")
        return [(_index(one, name), _index(two, name)) for one, two in pairs]

    def texts(self, name: str) -> list[str]:
        """A list of texts; empty where it isn't there."""
        listed = self._list(name) if name in self.fields else []
        return [Body({name: each}, (name,)).text(name) for each in listed]

    def _list(self, name: str) -> list[Any]:
        value = self.fields.get(name)
        if not isinstance(value, list) or len(value) > LONGEST_TEXT:
            raise RequestError(f"{name} must be a list")
        return value


def _index(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10_000:
        raise RequestError(f"{name} must have whole numbers from 0 to 9999")
    return value
