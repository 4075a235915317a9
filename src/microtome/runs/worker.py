"""The child process of the local executor: reads tasks from a socket, answers outcomes."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection

from microtome.runs.executor import Outcome, ReadyTrial, Report, context_of, execute

REPORT_SECONDS = 0.25  # a trial that reports every step must not drown the driver


@dataclass(frozen=True)
class Ready:
    """The worker is up."""


@dataclass(frozen=True)
class GiveBack:
    """From the driver: hand back what you haven't begun."""


@dataclass(frozen=True)
class GivenBack:
    """So many tasks at the end of the line weren't begun, and won't be."""

    n_tasks: int


Message = Ready | GivenBack | Report | Outcome


class _Line:
    """The socket to the driver; two threads of ours speak on it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._speaking = threading.Lock()

    def send(self, message: Message) -> None:
        with self._speaking:
            self.connection.send(message)


def main(arguments: list[str]) -> None:
    """Work until the driver closes the socket or dies. Arguments: descriptor, slot, device."""
    line = _Line(Connection(int(arguments[0])))
    slot, device = int(arguments[1]), arguments[2]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides when to stop
    tasks: queue.SimpleQueue[ReadyTrial] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(line, tasks), daemon=True).start()
    line.send(Ready())
    while True:
        task = tasks.get()
        reporter = _Reporter(line, task.trial.hash)
        context = context_of(task, device=device, slot=slot, reporter=reporter)
        line.send(execute(task, context, worker=f"local-{slot}"))


def _receive(line: _Line, tasks: queue.SimpleQueue[ReadyTrial]) -> None:
    """Take tasks at once, so that the driver never waits to hand one over; die with the driver."""
    parent = os.getppid()
    with contextlib.suppress(EOFError, OSError):
        while os.getppid() == parent:
            if not line.connection.poll(1.0):
                continue
            message = line.connection.recv()
            if isinstance(message, GiveBack):
                line.send(GivenBack(_drained(tasks)))
            else:
                tasks.put(message)
    # We lead our own process group: what the trial has started goes with us.
    os.killpg(os.getpgid(0), signal.SIGKILL)


def _drained(tasks: queue.SimpleQueue[ReadyTrial]) -> int:
    n_tasks = 0
    with contextlib.suppress(queue.Empty):
        while True:
            tasks.get_nowait()
            n_tasks += 1
    return n_tasks


class _Reporter:
    """Sends a trial's reports to the driver, at most a few per second."""

    def __init__(self, line: _Line, trial_hash: str) -> None:
        self._line = line
        self._hash = trial_hash
        self._last = 0.0

    def __call__(self, text: str, scores: Mapping[str, float]) -> None:
        now = time.monotonic()
        if now - self._last >= REPORT_SECONDS:
            self._last = now
            self._line.send(Report(self._hash, text, dict(scores)))
