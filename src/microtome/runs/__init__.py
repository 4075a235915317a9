"""Runs: sweeps of trials that survive anything, on one machine or on a Ray cluster.

The only place that schedules, stores and resumes. It knows no model: a trial names a function,
"module:function", and this package calls it somewhere and keeps what it gives.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from microtome.errors import Diverged, RequestError
from microtome.runs.executor import Executor, InlineExecutor, ReadyTrial, context_of, measured
from microtome.runs.interrupts import Interrupts, Stopped
from microtome.runs.order import distinct
from microtome.runs.progress import Progress
from microtome.runs.record import Record
from microtome.runs.result import Context, Need, Result, plain
from microtome.runs.runner import RunResult, open_run, run_trials
from microtome.runs.store import Store
from microtome.runs.trackers import make_tracker
from microtome.runs.trial import Trial, seed_for
from microtome.threads import threads_each

__all__ = [
    "Context",
    "Diverged",
    "Executor",
    "Need",
    "Record",
    "Result",
    "RunResult",
    "Stopped",
    "Trial",
    "open_run",
    "run",
    "run_here",
    "seed_for",
]


def run(
    trials: Iterable[Trial],
    folder: str | Path,
    request: Mapping[str, Any],
    *,
    executor: str | Executor = "local",
    workers: int | None = None,
    devices: Sequence[str] = ("cpu",),
    retry_failed: bool = False,
    progress: bool = True,
    track: str | None = None,
    ray_address: str | None = None,
    notes: Sequence[str] = (),
    whole: bool = False,
) -> RunResult:
    """Run the trials into ``folder``; what is stored there already isn't run again.

    ``run(trials, "out", {"model": "mine"}).rows`` are the rows of all trials. ``request`` says what
    the run is about: a later call with the same one, or a wider one, resumes; another is refused.
    ``workers=0`` runs in this process. A failed trial doesn't raise: it is in ``.failed``.
    ``notes`` are lines about what is read, for people: run.json keeps them. With ``whole``, the
    trials are all of the run: what a wider request replaces keeps its record and is no longer part
    of the results (the comparison of two seeds, when there are three now).
    Ctrl-C or SIGTERM raises ``Stopped``, a full disk ``StorageError``; the same call resumes.
    """
    folder, planned = Path(folder), list(distinct(trials).values())
    inline = executor == "local" and workers == 0
    if not inline:
        _check_importable(planned)
    tracker = make_tracker(track, folder, request) if track else None
    try:
        return run_trials(
            planned,
            folder,
            request,
            executor=_executor(executor, workers, devices, ray_address),
            progress=Progress(shown=progress),
            retry_failed=retry_failed,
            tracker=tracker,
            interrupts=Interrupts(at_once=inline),
            notes=notes,
            whole=whole,
        )
    finally:
        if tracker:
            tracker.close()


def _check_importable(trials: Iterable[Trial]) -> None:
    """Another process can't import from a notebook, or from the script that was started."""
    for trial in trials:
        if trial.function.startswith("__main__:"):
            raise RequestError(
                f"{trial.function} is in a notebook or script, where no worker can import it",
                "put it into a module, or use workers=0",
            )


def _executor(
    executor: str | Executor, workers: int | None, devices: Sequence[str], ray_address: str | None
) -> Executor:
    if not isinstance(executor, str):
        return executor
    if executor == "local" and workers == 0:
        return InlineExecutor(threads=threads_each(1), device=devices[0])
    if executor == "local":
        from microtome.runs.local import LocalExecutor

        return LocalExecutor(workers=workers, devices=devices)
    if executor == "ray":
        from microtome.runs.ray_executor import RayExecutor

        return RayExecutor(address=ray_address)
    raise RequestError(f"executor must be local or ray, got {executor!r}")


def run_here(
    trial: Trial,
    *,
    needs: RunResult | None = None,
    scratch: str | Path | None = None,
    device: str = "cpu",
) -> Result:
    """Run one trial in this process and give its result; nothing is stored, errors are raised.

    ``needs`` is the run that holds the needed trials. ``scratch`` keeps the checkpoint folder.
    """
    if trial.needs and needs is None:
        raise RequestError(
            f"trial {trial.title} needs {len(trial.needs)} other trials", "give needs=open_run(RUN)"
        )
    stored = [Store(needs.folder).need(needs.records[one]) for one in trial.needs] if needs else []
    with tempfile.TemporaryDirectory(prefix="microtome-") as temporary:
        task = ReadyTrial(trial, stored, Path(scratch or Path(temporary) / "scratch"))
        context = context_of(task, device=device, slot=0, reporter=lambda text, scores: None)
        result = measured(task, context)
    rows: Any = [plain(row) for row in result.rows]
    summary: Any = plain(result.summary)
    return replace(result, rows=rows, summary=summary)
