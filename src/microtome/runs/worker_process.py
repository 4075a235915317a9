"""A local worker as the driver sees it: a child process, a socket, and the tasks handed to it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from multiprocessing.connection import Connection, Pipe

from microtome.runs.executor import ReadyTrial
from microtome.runs.worker import GiveBack, Message
from microtome.threads import counts, waiting

# The path first: a worker must find what the driver finds, beginning with this package.
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from microtome.runs.worker import main; main(sys.argv[2:])"
)
_PILE_SECONDS = 0.05  # about this much work waits at a worker
_PILE_MOST = 64
LONG_SECONDS = 0.5  # no pile should wait for a trial this long


class WorkerProcess:
    """One child and the tasks handed to it, in order; the first is the one it is at."""

    def __init__(self, slot: int, device: str, threads: int) -> None:
        self.slot = slot
        self.tasks: deque[ReadyTrial] = deque()
        self.ready = False
        self.asked_back = False
        self.since = time.monotonic()  # when the first task began
        self.pace: float | None = None  # seconds per trial, lately
        self.last_words = ""  # the end of what it printed, known when it is dead
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        ours, theirs = Pipe()
        self.connection: Connection = ours
        variables, shown = _environment(device, threads)
        command = [sys.executable, "-c", _BOOT, json.dumps(sys.path)]
        self.process = subprocess.Popen(
            [*command, str(theirs.fileno()), str(slot), shown],
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,  # Ctrl-C reaches the driver alone; a kill takes its children
        )
        theirs.close()

    def wants(self) -> int:
        """How many more tasks it should hold: a pile of short ones, or a single long one."""
        if self.pace is None or self.is_long():
            return 1 - len(self.tasks)
        pile = int(_PILE_SECONDS / max(self.pace, 1e-6))
        return min(_PILE_MOST, max(1, pile)) - len(self.tasks)

    def is_long(self) -> bool:
        """Whether what it is at has turned out long."""
        return bool(self.tasks) and time.monotonic() - self.since > LONG_SECONDS

    def hand(self, task: ReadyTrial) -> None:
        """Give it a task."""
        if not self.tasks:
            self.since = time.monotonic()
        self.tasks.append(task)
        self._send(task)

    def ask_back(self) -> None:
        """Ask for the tasks that it hasn't begun."""
        self.asked_back = True
        self._send(GiveBack())

    def _send(self, message: ReadyTrial | GiveBack) -> None:
        with contextlib.suppress(OSError):  # it is dying, and that is noticed where deaths are
            self.connection.send(message)

    def given_back(self, n_tasks: int) -> list[ReadyTrial]:
        """The last ``n_tasks``, in their order; it no longer holds them."""
        self.asked_back = False
        back = [self.tasks.pop() for _ in range(n_tasks)]
        return back[::-1]

    def done(self, seconds: float) -> ReadyTrial:
        """The first task is finished and took so long."""
        self.since = time.monotonic()
        self.pace = seconds if self.pace is None else 0.7 * self.pace + 0.3 * seconds
        return self.tasks.popleft()

    def received(self) -> list[Message] | None:
        """Every message that has arrived; None when the other end is gone."""
        messages: list[Message] = []
        try:
            while self.connection.poll():
                messages.append(self.connection.recv())
        except (EOFError, OSError):
            return messages or None
        return messages

    def close(self) -> None:
        """Kill the child and what it started; may be called twice."""
        if self.connection.closed:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.connection.close()
        with self._log:
            self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 2000))
            self.last_words = self._log.read().decode(errors="replace").strip()

    def manner_of_death(self) -> str:
        """The signal or the exit code, for people."""
        code = self.process.returncode
        if code is None or code >= 0:
            return f"exit {code}"
        name = signal.Signals(-code).name
        return f"{name} (out of memory?)" if name == "SIGKILL" else name


def _environment(device: str, threads: int) -> tuple[dict[str, str], str]:
    """The child's variables, set before it imports anything, and the device as it sees it."""
    variables = counts(os.environ, threads) | waiting(os.environ)
    if not device.startswith("cuda"):
        return variables, device
    return {**variables, "CUDA_VISIBLE_DEVICES": device.partition(":")[2] or "0"}, "cuda"
