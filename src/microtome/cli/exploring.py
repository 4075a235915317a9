"""``microtome explore``: a model on a local page, to operate on by hand."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtome.cli import parameters as given
from microtome.cli.option_groups import takes_data
from microtome.cli.output import log, show
from microtome.errors import MissingExtra, RequestError
from microtome.tasks.data_spec import DataSpec

if TYPE_CHECKING:
    from microtome.explorer.session import Session, SessionRequest

ModelOrRun = Annotated[
    str | None,
    typer.Argument(metavar="[MODEL|RUN]", help="Default: minilm, else nano-bert."),
]
Second = Annotated[
    str | None, typer.Option("--second", help="Another checkpoint, to compare its attention.")
]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Default: any that is free.")]
Host = Annotated[str, typer.Option("--host", help="Another address needs --i-know.")]
IKnow = Annotated[bool, typer.Option("--i-know", help="Other machines may get in; that is meant.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Only print the address.")]
Out = Annotated[Path, typer.Option("--out", help="Where Save writes its folders.")]


@takes_data(without=("dev_data",))
def explore(
    rows: DataSpec,
    model: ModelOrRun = None,
    second: Second = None,
    max_length: given.MaxLength = None,
    out: Out = Path(),
    port: Port = 0,
    host: Host = "127.0.0.1",
    i_know: IKnow = False,
    no_browser: NoBrowser = False,
    device: given.Device = "cpu",
    allow_pickle: given.AllowPickle = False,
    revision: str | None = None,
    quiet: given.Quiet = False,
    json: given.Json = False,
) -> None:
    """Open a model, or a run, on a local page: cut it by hand and see what that does.

    Scores are of 200 rows unless --limit says otherwise. Without arguments it opens an English
    model on an embedded task. The page is for this machine alone; Ctrl-C ends it.

    Example: microtome explore ./my-model --data mine.csv --text-column review --label-column stars
    """
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtra.named(package, "explorer")
    if not out.is_dir():
        raise RequestError(f"--out expects a folder that exists, got {out}")
    from microtome.explorer.serving import Doorway, check_host, serve
    from microtome.explorer.session import Session, SessionRequest

    check_host(host, is_sure=i_know)
    door = Doorway(host, port)
    rows = replace(rows, max_length=max_length)
    asked = SessionRequest(
        model or "", rows, second, out=out, revision=revision, device=device,
        allow_pickle=allow_pickle,
    )  # fmt: skip
    with suppress(KeyboardInterrupt), door.socket:  # Ctrl-C is how it ends
        request = _completed(asked)
        log(f"opening {request.model}")
        session = Session(request)
        _announce(session, door.address, as_json=json)
        if i_know:
            log("warning: other machines can reach this page; whoever has the address is let in")
        serve(session, door, browser=not no_browser)


def _completed(asked: SessionRequest) -> SessionRequest:
    """With what wasn't said: a run names its model and rows, nothing at all the embedded ones."""
    from microtome.examination import default_model
    from microtome.explorer.stored_run import StoredRun, is_run

    if asked.model and is_run(Path(asked.model)):
        if not asked.rows.is_empty:
            raise RequestError(
                f"{asked.model} is a run, which has its rows", "leave --task and --data out"
            )
        run = StoredRun.of(Path(asked.model))
        return replace(asked, model=run.model, rows=run.rows, run=run)
    return replace(asked, model=asked.model or default_model())


def _announce(session: Session, address: str, *, as_json: bool) -> None:
    on = "no rows" if session.dataset is None else f"{len(session.dataset):,} rows"
    task = None if session.dataset is None else session.dataset.task.name
    document = {"address": address, "model": session.name, "task": task}
    log(f"exploring {session.name} on {on}{f' of {task}' if task else ''}; Ctrl-C ends it")
    show(document, as_json=as_json, for_people=lambda console: console.print(
        address, markup=False, soft_wrap=True))  # fmt: skip
    sys.stdout.flush()
