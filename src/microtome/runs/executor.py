"""The executor seam: tasks go in, outcomes come out. And what every executor does with a task."""

from __future__ import annotations

import importlib
import time
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from microtome.errors import Diverged
from microtome.files import is_full_disk
from microtome.runs.machine import versions
from microtome.runs.result import Context, Need, Reporter, Result, finite, non_finite, plain
from microtome.runs.trial import Trial

OutcomeStatus = Literal["ok", "failed", "diverged", "timeout", "no-space"]


@dataclass(frozen=True)
class ReadyTrial:
    """A trial that is ready to run, with what its needs left and where it may write."""

    trial: Trial
    needs: Sequence[Need]
    scratch: Path


@dataclass(frozen=True)
class Outcome:
    """What became of a task. ``no-space`` isn't recorded: it stops the run."""

    hash: str
    status: OutcomeStatus
    rows: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: bool = False
    error: str | None = None
    traceback: str | None = None
    seconds: float = 0.0
    cpu_seconds: float = 0.0  # of all threads
    worker: str = ""
    attempts: int = 1
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """How far a running trial is, for people."""

    hash: str
    text: str
    scores: Mapping[str, float]


class Executor(Protocol):
    """Runs tasks somewhere. It never writes into the run but for a task's scratch folder."""

    @property
    def threads(self) -> int:
        """How many threads one trial may use."""

    def submit(self, task: ReadyTrial) -> None:
        """Take a task; it runs when there is room."""

    def next_finished(self, timeout: float) -> list[Outcome | Report]:
        """What came in, waiting up to ``timeout`` seconds for the first; may be empty."""

    def close(self) -> None:
        """Abandon what is running, leave no process behind."""


def load_function(name: str) -> Any:  # noqa: ANN401 - whatever stands under that name
    """The function behind "module:function"."""
    module_name, _, function_name = name.partition(":")
    return getattr(importlib.import_module(module_name), function_name)


def context_of(task: ReadyTrial, *, device: str, slot: int, reporter: Reporter) -> Context:
    """What the task's function gets to see."""
    return Context(
        hash=task.trial.hash,
        where=task.trial.where,
        needs={need.hash: need for need in task.needs},
        scratch_path=task.scratch,
        device=device,
        slot=slot,
        reporter=reporter,
    )


def measured(task: ReadyTrial, context: Context) -> Result:
    """Call the task's function and check that it gave a result."""
    result = load_function(task.trial.function)(dict(task.trial.request), context)
    if not isinstance(result, Result):
        raise TypeError(f"{task.trial.function} must return a Result, got {type(result).__name__}")
    if result.checkpoint and not context.scratch_path.is_dir():
        raise RuntimeError(
            f"{task.trial.function} says checkpoint=True but wrote no scratch folder"
        )
    return result


def execute(task: ReadyTrial, context: Context, *, worker: str) -> Outcome:
    """Run a task to its outcome; nothing that the function raises gets past here."""
    started, cpu_started = time.perf_counter(), time.process_time()
    try:
        outcome = _outcome_of(task.trial.hash, measured(task, context))
    except Diverged as error:
        outcome = Outcome(task.trial.hash, "diverged", error=str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - kept in the record
        outcome = _failure(task.trial.hash, error)
    return replace(
        outcome,
        seconds=time.perf_counter() - started,
        cpu_seconds=time.process_time() - cpu_started,
        worker=worker,
        versions=versions(),
    )


def _failure(trial_hash: str, error: BaseException) -> Outcome:
    status: OutcomeStatus = "no-space" if is_full_disk(error) else "failed"
    text = f"{type(error).__name__}: {error}"
    trace = "".join(traceback.format_exception(error))
    return Outcome(trial_hash, status, error=text, traceback=trace)


def _outcome_of(trial_hash: str, result: Result) -> Outcome:
    rows: Any = [plain(row) for row in result.rows]
    summary: Any = plain(result.summary)
    arrays = _checked_arrays(result.arrays) if result.arrays else {}
    wrong = list(non_finite({"rows": rows, "summary": summary}))
    if wrong:
        error = f"not a finite number: {', '.join(wrong[:5])}" + (" …" if wrong[5:] else "")
        rows, summary = finite(rows), finite(summary)
        return Outcome(trial_hash, "diverged", rows, summary, error=error)
    return Outcome(trial_hash, "ok", rows, summary, arrays, result.checkpoint)


def _checked_arrays(arrays: Mapping[str, Any]) -> dict[str, Any]:
    import numpy as np

    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.hasobject:
            raise TypeError(f"Result.arrays[{name!r}] must be a numpy array without objects")
    return dict(arrays)


class InlineExecutor:
    """Runs tasks one by one in this process (``workers=0``): for debuggers and notebooks.

    It can't stop a trial that hangs, and doesn't survive one that kills the process.
    """

    def __init__(self, *, threads: int, device: str = "cpu") -> None:
        self.threads = threads
        self._device = device
        self._waiting: deque[ReadyTrial] = deque()

    def submit(self, task: ReadyTrial) -> None:
        """Queue a task."""
        self._waiting.append(task)

    def next_finished(self, timeout: float) -> list[Outcome | Report]:
        """Run the next task, however long it takes."""
        if not self._waiting:
            return []
        task = self._waiting.popleft()
        reports: list[Outcome | Report] = []

        def reporter(text: str, scores: Mapping[str, float]) -> None:
            reports.append(Report(task.trial.hash, text, scores))

        context = context_of(task, device=self._device, slot=0, reporter=reporter)
        outcome = execute(task, context, worker="inline")
        return [*reports[-1:], outcome]

    def close(self) -> None:
        """Forget what waits."""
        self._waiting.clear()
