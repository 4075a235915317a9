"""A pass: one `microtome` command in a process of its own, which may be killed.

The parent has imported everything and computed nothing; each pass is a fork of it, so that a
hundred of them are affordable.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pyarrow.json
import pyarrow.parquet
import scipy.stats
import torch
import transformers
import uvicorn

from microtome import examination, replication, trimming
from microtome.cli import run
from microtome.experiments import all_experiments
from microtome.runs.machine import commit

LOADED = (
    pyarrow.json, pyarrow.parquet, scipy.stats, transformers, uvicorn, examination, replication,
    trimming,
)  # fmt: skip
Before = Callable[[], None]


def load_everything() -> None:
    """What each pass would load by itself; the source tree may change meanwhile."""
    torch.set_num_threads(1)
    all_experiments(), commit()
    with redirect_stdout(StringIO()):  # the parser loads its parts when it is first used
        assert run(["list", "edits"]) == 0


def nothing() -> None:
    """What is done before an ordinary pass."""


@dataclass(frozen=True)
class Ended:
    """How a pass ended: its exit code, None if it was killed, and what it said on stderr."""

    code: int | None
    said: str

    @property
    def errors(self) -> list[str]:
        """Its lines of error."""
        return [line for line in self.said.splitlines() if line.startswith("microtome: ")]

    @property
    def is_clear(self) -> bool:
        """Whether it was killed, or is done, or tells in one line why it isn't."""
        if self.code in (None, 0):
            return True
        lines = self.said.strip().splitlines()
        ends_with_it = bool(lines) and lines[-1:] == self.errors
        return self.code in (1, 2) and ends_with_it and "Traceback" not in self.said


class Pass:
    """A command under way; its stdout and stderr go to the files ``said`` and ``said``.out."""

    def __init__(self, arguments: Sequence[str], said: Path, before: Before = nothing) -> None:
        self.said = said
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._work(arguments, before)
        os.setpgid(self.pid, self.pid)  # here too: it may be killed before it has begun
        self._status: int | None = None

    def _work(self, arguments: Sequence[str], before: Before) -> None:
        code = 70
        try:
            for stream, name in ((1, f"{self.said}.out"), (2, str(self.said))):
                os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), stream)
            os.setpgid(0, 0)
            torch.set_num_threads(1)
            before()
            code = run(arguments)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)

    @property
    def is_over(self) -> bool:
        """Whether it has ended by itself."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is not None

    def wait(self, seconds: float = 3600.0) -> Ended:
        """How it ended; after ``seconds`` it is killed."""
        deadline = time.monotonic() + seconds
        while not self.is_over and time.monotonic() < deadline:
            time.sleep(0.002)
        if self._status is None:
            os.killpg(self.pid, signal.SIGKILL)
            self._status = os.waitpid(self.pid, 0)[1]
        code = os.waitstatus_to_exitcode(self._status)
        return Ended(code if code >= 0 else None, self.said.read_text(errors="replace"))
