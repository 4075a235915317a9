"""Ctrl-C and SIGTERM: noted at once, acted on between writes."""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from microtome.errors import RunError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(RunError):
    """Ctrl-C or SIGTERM. What is done is stored; the same command resumes."""


class Interrupts:
    """While entered, the first signal sets ``asked`` and the second raises KeyboardInterrupt.

    ``at_once=True`` raises at the first: for trials that run in this process.
    """

    def __init__(self, *, at_once: bool = False) -> None:
        self.asked: str | None = None
        self._at_once = at_once
        self._before: dict[signal.Signals, signal.Handlers] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._note)  # type: ignore[assignment]
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        again = self.asked is not None
        self.asked = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        if again or self._at_once:
            raise KeyboardInterrupt


def how_to_resume(folder: Path) -> str:
    """The exact way to continue a run: the command that was typed, or the call."""
    program = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else ""
    if program == "microtome":
        return "to resume: " + shlex.join([program, *sys.argv[1:]])
    return f"to resume: call run() again with the same request and folder={str(folder)!r}"


def stopped(by: str, n_stored: int, n_trials: int, folder: Path) -> Stopped:
    """The error that ends an interrupted run."""
    return Stopped(
        f"stopped by {by}: {n_stored} of {n_trials} trials are stored in {folder}",
        how_to_resume(folder),
    )
