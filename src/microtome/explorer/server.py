"""The endpoints of the page; everything that computes is in ``session``.

Every request but ``/`` (token in the query) and ``/static/`` needs the header X-Microtome-Token.
X-Microtome-Page names the page: what one cancels or has tried is no other's.

    GET  /api/model      the model, its rows, what can be done with it, and why the rest can't
    POST /api/edit       {edit} → {edit, order, disabled, layers, other, base_layers, problem}
    POST /api/stack      {order, disabled, other?} → the same: the edit that makes a stack
    POST /api/text       {text, pair?, edit, control?}
                         → {kind, tokens, before, after, depths, readout}
    POST /api/attention  {text, pair?, edit, which, layer?, head?} → bytes (0 to 255); the header
                         X-Shape is "layers,heads,tokens,tokens", X-Tokens the text's tokens
    POST /api/score      {edit} → {edit, metric, n, base, now, change, change_low, change_high, …}
    GET  /api/progress   {running, edit, done, total} of the page's score
    GET  /api/rows       ?start=&count= → {rows: [{text, pair, label}], n}
    GET  /api/tried      {cuts: [{edit, score, low, high, change, …}]}, the newest last
    GET  /api/frontier   {cuts}: those of the trim in the run that was opened
    GET  /api/run        {experiments: [{name, status, finding, views}]}
    POST /api/save       {edit, folder} → {out, certificate}

An error is {"error": {"kind", "message", "hint"}}: 400 a wrong request, 403 from elsewhere, 409
something newer was asked for, 413 too large, 422 it failed while running.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from microtome.errors import EditError, MicrotomeError, RequestError
from microtome.explorer.guard import (
    PAGE,
    Body,
    Guard,
    TooLarge,
    error_response,
    too_large,
)
from microtome.explorer.session import Session
from microtome.explorer.stack import LONGEST
from microtome.explorer.work import Cancelled, Desk, Job, Page, Pages

STATIC = Path(__file__).resolve().parent / "static"
MOST_ROWS = 200  # in one answer
SECONDS_BETWEEN_LOOKS = 0.5  # whether the page is still there
WHICH = ("before", "after", "second")
_FOLDER = re.compile(r"\w[\w.+-]{0,99}")
T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]


def application(session: Session, *, token: str, host: str = "127.0.0.1") -> Guard:
    """The page of one session, behind its guard."""
    endpoints = Endpoints(session)
    routes = [
        Route("/", endpoints.page),
        Mount("/static", StaticFiles(directory=STATIC)),
        *(Route(f"/api/{n}", _answered(getattr(endpoints, n))) for n in GETS),
        *(Route(f"/api/{n}", _answered(getattr(endpoints, n)), methods=["POST"]) for n in POSTS),
    ]
    handlers = {HTTPException: _http_error}
    app = Starlette(routes=routes, exception_handlers=handlers)  # type: ignore[arg-type]
    return Guard(app, token, host)


GETS = ("model", "progress", "rows", "tried", "frontier", "run")
POSTS = ("edit", "stack", "text", "attention", "score", "save")


class Endpoints:
    """One method per endpoint: read the request, let a thread compute, answer."""

    def __init__(self, session: Session) -> None:
        self.session, self.desk, self.pages = session, Desk(), Pages()

    async def page(self, request: Request) -> Response:
        """The page itself."""
        return FileResponse(STATIC / "index.html", media_type="text/html; charset=utf-8")

    async def model(self, request: Request) -> Response:
        """What is on the table."""
        return _json(await self.desk.quick(Job(), self.session.about))

    async def rows(self, request: Request) -> Response:
        """Some rows of the data."""
        start, count = (
            _query(request, name, least) for name, least in (("start", 0), ("count", 1))
        )
        many = min(count, MOST_ROWS)
        return _json(await self.desk.quick(Job(), lambda: self.session.rows(start, many)))

    async def tried(self, request: Request) -> Response:
        """The edits that this page has scored."""
        return _json({"cuts": list(self._page(request).tried.values())})

    async def progress(self, request: Request) -> Response:
        """How far the page's score is."""
        job = self._page(request).waiting.get("score")
        if job is None:
            return _json({"running": False, "edit": None, "done": 0, "total": 0})
        return _json({"running": True, "edit": job.edit, "done": job.done, "total": job.total})

    async def frontier(self, request: Request) -> Response:
        """The cuts of the run's trim."""
        run = self.session.run
        return _json({"cuts": []} if run is None else run.frontier())

    async def run(self, request: Request) -> Response:
        """The run that was opened."""
        if (run := self.session.run) is None:
            raise RequestError("no run was opened", "start with: microtome explore RUN")
        return _json(run.as_json())

    async def edit(self, request: Request) -> Response:
        """An edit's text as a stack."""
        body = await Body.of(request, "edit")
        text = body.text("edit", most=LONGEST)
        return await self._stack(request, text, lambda: self.session.stacked(text)[1].as_json())

    async def stack(self, request: Request) -> Response:
        """A stack as an edit's text."""
        body = await Body.of(request, "order", "disabled", "other")
        stack = body.numbers("order"), body.pairs("disabled"), body.texts("other")
        return await self._stack(request, "", lambda: self.session.restacked(*stack)[1].as_json())

    async def _stack(
        self, request: Request, text: str, work: Callable[[], dict[str, Any]]
    ) -> Response:
        try:
            return _json(await self._newest(request, "edit", work))
        except EditError as error:
            problem = {"message": error.message, "hint": error.hint}
            empty: dict[str, Any] = {"order": [], "disabled": [], "other": []}
            none = {"layers": 0, "base_layers": 0}
            return _json({"edit": text, **empty, **none, "problem": problem})

    async def text(self, request: Request) -> Response:
        """One text, before and after."""
        body = await Body.of(request, "text", "pair", "edit", "control")
        text, pair, control = body.text("text"), body.optional_text("pair"), body.flag("control")
        edit = body.text("edit", most=LONGEST)

        def work() -> dict[str, Any]:
            edits, _ = self.session.rules.read(edit)
            return self.session.text(text, pair, edits, control=control)

        return _json(await self._newest(request, "text", work))

    async def attention(self, request: Request) -> Response:
        """Attention maps as bytes."""
        body = await Body.of(request, "text", "pair", "edit", "which", "layer", "head")
        text, pair, which = body.text("text"), body.optional_text("pair"), body.text("which")
        edit, layer, head = (
            body.text("edit", most=LONGEST),
            body.number("layer"),
            body.number("head"),
        )
        if which not in WHICH:
            raise RequestError(f"which must be one of {', '.join(WHICH)}")
        if (layer is None) != (head is None):
            raise RequestError("layer and head go together")
        place = None if layer is None or head is None else (layer, head)

        def work() -> tuple[bytes, str, int]:
            edits, _ = self.session.rules.read(edit)
            maps, n_tokens = self.session.attention(text, pair, edits, which, place)
            return maps.tobytes(), ",".join(map(str, maps.shape)), n_tokens

        kind = f"attention {which} {'all' if place is None else 'one'}"
        data, shape, n_tokens = await self._newest(request, kind, work)
        headers = {"X-Shape": shape, "X-Tokens": str(n_tokens)}
        return Response(data, media_type="application/octet-stream", headers=headers)

    async def score(self, request: Request) -> Response:
        """The score of an edit; a newer one of the same page ends it."""
        body = await Body.of(request, "edit")
        edits, stack = self.session.rules.read(body.text("edit", most=LONGEST))
        page = self._page(request)
        job = page.start("score", stack.edit)

        def work() -> dict[str, Any]:
            return self.session.score(edits, lambda d, n: self.desk.give_way(job, d, n))

        try:
            found = await _watched(request, job, self.desk.slow(job, work))
        finally:
            page.finish("score", job)
        names = ("change", "change_low", "change_high")
        cut = {name: found[name] for name in names} | {
            "edit": found["edit"], "layers": len(stack.order), "score": found["now"]["value"],
            "low": found["now"]["low"], "high": found["now"]["high"],
            "latency_ms": found["latency_ms"]["now"],
            "speed": found["latency_ms"]["base"] / found["latency_ms"]["now"],
        }  # fmt: skip
        page.remember(found["edit"], cut)
        return _json(found)

    async def save(self, request: Request) -> Response:
        """Write the edited model into a new folder, proven."""
        body = await Body.of(request, "edit", "folder")
        edits, _ = self.session.rules.read(body.text("edit", most=LONGEST))
        folder = body.text("folder", most=LONGEST)
        if not _FOLDER.fullmatch(folder):
            raise RequestError(
                "the folder must be a plain name of letters, digits, dots and dashes",
                "start microtome explore in the folder that it belongs in, or give --out",
            )
        return _json(await self.desk.slow(Job(), lambda: self.session.save(edits, folder)))

    async def _newest(self, request: Request, kind: str, work: Callable[[], T]) -> T:
        """The result of quick work, unless the page asks for the same kind again before."""
        page = self._page(request)
        job = page.start(kind)
        try:
            return await self.desk.quick(job, work)
        finally:
            page.finish(kind, job)

    def _page(self, request: Request) -> Page:
        return self.pages.of(request.headers.get(PAGE, "")[:100])


async def _watched(request: Request, job: Job, work: Awaitable[T]) -> T:
    """The result of ``work``, which is called off when its page goes away, or the server ends."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=SECONDS_BETWEEN_LOOKS)
            if not task.done() and await request.is_disconnected():
                job.called_off.set()
    finally:
        job.called_off.set()
    return task.result()


def _answered(handler: Handler) -> Handler:
    """The handler with every error in the shape that the page and the command line know."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except (Cancelled, ClientDisconnect):
            return error_response(409, "Cancelled", "something newer was asked for")
        except TooLarge:
            return too_large()
        except MicrotomeError as error:
            status = 400 if isinstance(error, RequestError) else 422
            return error_response(status, error.kind, error.message, error.hint)
        except Exception as error:  # noqa: BLE001 - a bug: the page gets JSON, the terminal a traceback
            traceback.print_exc(file=sys.stderr)
            hint = "this is a bug in microtome"
            return error_response(500, type(error).__name__, str(error), hint)

    return answer


async def _http_error(request: Request, error: HTTPException) -> Response:
    return error_response(error.status_code, "RequestError", error.detail)


def _query(request: Request, name: str, least: int) -> int:
    given = request.query_params.get(name, str(least))
    if not (given.isascii() and given.isdigit() and len(given) < 10 and int(given) >= least):
        raise RequestError(f"{name} must be a whole number from {least}")
    return int(given)


def _json(document: dict[str, Any]) -> Response:
    text = json.dumps(_plain(document), ensure_ascii=False, allow_nan=False)
    # A data set may hold half a character, which has no UTF-8.
    return Response(text.encode("utf-8", "replace"), media_type="application/json")


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON
    """The value with null for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
