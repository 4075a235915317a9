"""The local executor: persistent workers, each a fresh process with a slot.

A slot is a device, or a group of cores. Short trials are handed over in piles, so that a worker
never waits for the driver; a pile that waits for a long trial is taken back. A worker that
dies is replaced, and the trial that it was at runs again (``attempts`` times in all); a trial past
its limit loses its worker.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import wait

from microtome import files
from microtome.errors import RequestError, RunError
from microtome.runs.executor import Outcome, ReadyTrial, Report
from microtome.runs.machine import versions
from microtome.runs.worker import GivenBack, Message, Ready
from microtome.runs.worker_process import WorkerProcess
from microtome.threads import n_cores, threads_each

_LOOK_SECONDS = 0.1  # how often limits and deaths are looked for
_STILLBORN_MOST = 3


def default_workers(devices: Sequence[str]) -> int:
    """One per accelerator; on CPUs one per four cores, because trials are mostly small models."""
    if any(device != "cpu" for device in devices):
        return len(devices)
    return max(1, n_cores() // 4)


class LocalExecutor:
    """Persistent workers on this machine."""

    def __init__(
        self, *, workers: int | None = None, devices: Sequence[str] = ("cpu",), attempts: int = 3
    ) -> None:
        if sys.platform == "win32":
            raise RequestError("local workers need Linux or macOS", "use workers=0")
        n_workers = default_workers(devices) if workers is None else workers
        if n_workers < 1:
            raise RequestError(f"workers must be 1 or more, got {n_workers}")
        self.threads = threads_each(n_workers)
        self._devices = [devices[slot % len(devices)] for slot in range(n_workers)]
        self._attempts = attempts
        self._waiting: deque[ReadyTrial] = deque()
        self._workers: list[WorkerProcess] = []  # by slot
        self._deaths: dict[str, int] = {}  # trial → workers that died at it
        self._n_stillborn = 0

    def submit(self, task: ReadyTrial) -> None:
        """Queue a task; the first ones bring the workers up."""
        self._waiting.append(task)

    def next_finished(self, timeout: float) -> list[Outcome | Report]:
        """Hand out tasks, then collect what came in."""
        deadline = time.monotonic() + timeout
        while True:
            self._bring_up()
            self._hand_out()
            left = max(0.0, deadline - time.monotonic())
            events = self._collect(min(left, _LOOK_SECONDS))
            events += self._look_at_clocks()
            if events or time.monotonic() >= deadline:
                return events

    def close(self) -> None:
        """Kill the workers; what they were at is lost, and will run again."""
        for worker in self._workers:
            worker.close()
        self._workers.clear()
        self._waiting.clear()

    def _bring_up(self) -> None:
        # No more workers than there is work: a run of two trials starts two processes.
        n_needed = min(len(self._devices), len(self._waiting) + len(self._workers))
        for slot in range(len(self._workers), n_needed):
            self._workers.append(WorkerProcess(slot, self._devices[slot], self.threads))

    def _hand_out(self) -> None:
        """Deal one task to each in turn, so that none gets a pile while another waits."""
        room = {worker.slot: worker.wants() for worker in self._workers}
        while self._waiting and any(n_free > 0 for n_free in room.values()):
            for worker in self._workers:
                if self._waiting and room[worker.slot] > 0:
                    room[worker.slot] -= 1
                    worker.hand(self._waiting.popleft())

    def _collect(self, timeout: float) -> list[Outcome | Report]:
        if not self._workers:
            time.sleep(timeout)
            return []
        wait([worker.connection for worker in self._workers], timeout)
        events: list[Outcome | Report] = []
        for worker in list(self._workers):
            gone = (
                worker.process.poll() is not None
            )  # asked first, so that what it said before is read below
            messages = worker.received()
            for message in messages or ():
                events += self._take(worker, message)
            if messages is None or (gone and not messages):
                events += self._bury(worker)
        return events

    def _take(self, worker: WorkerProcess, message: Message) -> list[Outcome | Report]:
        if isinstance(message, Report):
            return [message]
        if isinstance(message, Outcome):
            worker.done(message.seconds)
            return [replace(message, attempts=self._deaths.get(message.hash, 0) + 1)]
        if isinstance(message, GivenBack):
            self._waiting.extendleft(reversed(worker.given_back(message.n_tasks)))
        elif isinstance(message, Ready):
            worker.ready, worker.since, self._n_stillborn = True, time.monotonic(), 0
        return []

    def _bury(self, worker: WorkerProcess) -> list[Outcome | Report]:
        """Replace a dead worker; its trial runs again, unless it has killed enough of them."""
        self._replace(worker)
        if not worker.ready:
            self._n_stillborn += 1
            if self._n_stillborn >= _STILLBORN_MOST:
                end = worker.manner_of_death()
                raise RunError(f"workers can't be started ({end})", worker.last_words[-400:])
            return []
        if not worker.tasks:
            return []
        task = worker.tasks[0]
        n_deaths = self._deaths[task.trial.hash] = self._deaths.get(task.trial.hash, 0) + 1
        if n_deaths < self._attempts:
            return []
        self._waiting.popleft()  # where _replace has put it
        error = f"its worker died {n_deaths} times, last by {worker.manner_of_death()}"
        return [replace(self._lost(task, worker, error), attempts=n_deaths)]

    def _replace(self, worker: WorkerProcess) -> None:
        worker.close()
        for task in worker.tasks:
            files.remove(task.scratch)
        self._waiting.extendleft(reversed(worker.tasks))
        self._workers[worker.slot] = WorkerProcess(
            worker.slot, self._devices[worker.slot], self.threads
        )

    def _look_at_clocks(self) -> list[Outcome | Report]:
        """Stop what is past its limit; free what waits for a long trial."""
        events: list[Outcome | Report] = []
        for worker in list(self._workers):
            if not worker.tasks or not worker.ready:
                continue
            seconds = time.monotonic() - worker.since
            limit = worker.tasks[0].trial.limit
            if limit is not None and seconds > limit:
                events.append(self._stop(worker, seconds, limit))
            elif worker.is_long() and len(worker.tasks) > 1 and not worker.asked_back:
                worker.ask_back()
        return events

    def _stop(self, worker: WorkerProcess, seconds: float, limit: float) -> Outcome:
        task = worker.tasks[0]
        self._replace(worker)
        self._waiting.popleft()  # where _replace has put it
        error = f"stopped after {seconds:.1f} s, its limit is {limit:g} s"
        lost = self._lost(task, worker, error)
        n_attempts = self._deaths.get(task.trial.hash, 0) + 1
        return replace(lost, status="timeout", seconds=seconds, attempts=n_attempts)

    def _lost(self, task: ReadyTrial, worker: WorkerProcess, error: str) -> Outcome:
        words = worker.last_words
        return Outcome(
            task.trial.hash,
            "failed",
            error=error,
            traceback=f"the worker's last words:\n{words}" if words else None,
            worker=f"local-{worker.slot}",
            versions=versions(),
        )
