"""Progress of one long call, on stderr: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from microtome.cli.output import QUIET

SECONDS_BETWEEN_LINES = 10.0
Advance = Callable[[int, int, str], None]


@contextmanager
def progress(what: str) -> Iterator[Advance]:
    """Gives ``advance(done, total, note)``, which may be called as often as is convenient."""
    if QUIET.get():
        yield lambda done, total, note: None
        return
    if not sys.stderr.isatty():
        yield _lines(what)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, note="")

        def advance(done: int, total: int, note: str) -> None:
            bar.update(task, completed=done, total=total, note=note)

        yield advance


def _lines(what: str) -> Advance:
    started = last = time.monotonic()

    def advance(done: int, total: int, note: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < SECONDS_BETWEEN_LINES or not done:
            return
        last = now
        left = (now - started) / done * (total - done)
        sys.stderr.write(f"{what}: {done}/{total}, about {left:.0f} s left {note}\n")

    return advance
