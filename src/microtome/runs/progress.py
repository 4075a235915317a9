"""Progress for people, on stderr: a bar on a terminal, few plain lines elsewhere, or nothing."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TextIO

from microtome.runs.record import Record
from microtome.runs.trackers import scores_of
from microtome.runs.trial import Trial

if TYPE_CHECKING:
    import rich.progress

_LINE_SECONDS = 5.0
_BAR_SECONDS = 0.2
_OVERDUE_SECONDS = 10.0  # after them, an estimate of 0 s left says nothing


class Progress:
    """Counts trials and tells a display; without one it is silent."""

    def __init__(self, *, shown: bool = True, stream: TextIO | None = None) -> None:
        self._shown = shown
        self._stream = stream
        self._display: _Bar | _Lines | None = None
        self.n_done = self.n_failed = self.n_trials = 0
        self._work: dict[str, float] = {}  # of the trials that have no record yet
        self._done = _Done()
        self._text = ""
        self._told = 0.0

    @contextlib.contextmanager
    def over(
        self, trials: Mapping[str, Trial], records: Mapping[str, Record], *, retry_failed: bool
    ) -> Iterator[Progress]:
        """Show progress over ``trials``, of which some have a record already."""
        stored = [records[trial_hash] for trial_hash in trials if trial_hash in records]
        settled = [
            record
            for record in stored
            if record.ok or not (retry_failed or record.status == "blocked")
        ]
        self.n_trials, self.n_done = len(trials), len(settled)
        known = {record.hash for record in settled}
        self._work = {name: trial.work for name, trial in trials.items() if name not in known}
        self._done = _Done()
        self.n_failed = sum(not record.ok for record in settled)
        if self._shown:
            stream = self._stream or sys.stderr
            display = _Bar if stream.isatty() else _Lines
            self._display = display(self.n_trials, self.n_done, stream)
            self._told = time.monotonic()
        try:
            yield self
        finally:
            if self._display:
                self._tell(self._text, last=True)
                self._display.close()
                self._display = None

    def finished(self, record: Record) -> None:
        """A trial has a record now."""
        self.n_done += 1
        self.n_failed += not record.ok
        work = self._work.pop(record.hash, 0.0)
        if record.status != "blocked":  # nothing was done for it
            self._done.add(work)
        if not self._due() and self.n_done < self.n_trials:
            return  # a text per trial would cost more than a short trial does
        if record.ok:
            self._text = f"{record.title} {_scores(scores_of(record))}"
        elif record.status != "blocked":
            self._text = f"{record.title} {record.status}: {record.error}"
        self._tell(self._text)

    def report(self, name: str, text: str, scores: Mapping[str, float]) -> None:
        """A running trial says how far it is."""
        self._tell(f"{name} {text} {_scores(scores)}")

    def _due(self) -> bool:
        return self._display is not None and (time.monotonic() - self._told >= self._display.every)

    def _tell(self, text: str, *, last: bool = False) -> None:
        if self._display is None or not (last or self._due()):
            return
        self._told = time.monotonic()
        # A label or an error may contain anything; one line of plain text is shown.
        printable = "".join(c if c.isprintable() else " " for c in text[:200])
        line = " ".join(printable.split())[:100]
        left = self._done.seconds_left(sum(self._work.values()))
        self._display.show(self.n_done, self.n_failed, line, left, last=last)


class _Done:
    """What was done since the display began, and when: what the time left is estimated from."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._work = self._seconds = 0.0  # until a trial last ended

    def add(self, work: float) -> None:
        self._work += work
        self._seconds = time.monotonic() - self._started

    def seconds_left(self, work: float) -> float | None:
        """At the speed so far, less what has passed since a trial last ended.

        Until the next one ends it falls; a mean over all time spent would rise with every second.
        None before the first trial has ended, and while one takes much longer than estimated.
        """
        if not self._work:
            return None
        since = time.monotonic() - self._started - self._seconds
        left = self._seconds / self._work * work - since
        return None if left < -_OVERDUE_SECONDS else max(0.0, left)


def _scores(scores: Mapping[str, float]) -> str:
    return " ".join(f"{name}={value:.4g}" for name, value in list(scores.items())[:3])


def in_words(seconds: float) -> str:
    """A duration for people: "40 s", "3 min", "2 h 5 min"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class _Lines:
    """A line at the beginning, at the end, and every few seconds between."""

    def __init__(self, n_trials: int, n_done: int, stream: TextIO) -> None:
        self._n_trials, self._stream = n_trials, stream
        self._started = time.monotonic()
        self.every = _LINE_SECONDS
        known = f", {n_done} of them done before" if n_done else ""
        print(f"microtome: {n_trials} trials{known}", file=stream, flush=True)

    def show(
        self, n_done: int, n_failed: int, text: str, left: float | None, *, last: bool
    ) -> None:
        if n_done >= self._n_trials and not last:
            return  # the last line says it
        parts = [f"microtome: {n_done}/{self._n_trials} trials"]
        if n_failed:
            parts.append(f"{n_failed} failed")
        if last:
            parts.append(f"{in_words(time.monotonic() - self._started)} spent")
        elif left is not None:
            parts.append(f"about {in_words(left)} left")
        if text:
            parts.append(text)
        print(", ".join(parts), file=self._stream, flush=True)

    def close(self) -> None:
        self._stream.flush()


class _Bar:
    """One bar over all trials, with time left, failures and the latest scores."""

    def __init__(self, n_trials: int, n_done: int, stream: TextIO) -> None:
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        self.every = _BAR_SECONDS
        self._escape = escape
        self._bar: rich.progress.Progress = Progress(
            TextColumn("trials"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}"),
            console=Console(file=stream),
            refresh_per_second=5,
        )
        self._bar.start()
        self._task = self._bar.add_task("", total=n_trials, completed=n_done, failed="", left="")

    def show(
        self, n_done: int, n_failed: int, text: str, left: float | None, *, last: bool
    ) -> None:
        failed = f"[red]{n_failed} failed[/red]" if n_failed else ""
        shown = self._escape(text)
        about = "" if left is None or last else f"about {in_words(left)} left"
        self._bar.update(self._task, completed=n_done, description=shown, failed=failed, left=about)

    def close(self) -> None:
        self._bar.stop()
