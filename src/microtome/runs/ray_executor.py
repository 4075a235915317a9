"""The Ray executor: Ray Core tasks. The only file that imports ray.

Nodes need Microtome, the trial's module and the paths in ``where`` (model, data); they don't need
the run's folder. A need's arrays and checkpoint travel to the node as bytes, and a checkpoint
travels back as bytes: encoders are small, and the driver stays the only writer.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from microtome.errors import MissingExtra, RunError
from microtome.files import is_full_disk, storage_error
from microtome.runs.executor import Outcome, ReadyTrial, Report, context_of, execute
from microtome.runs.machine import versions
from microtome.runs.result import Need
from microtome.runs.trial import Trial
from microtome.threads import n_cores, prepare, threads_each

Files = dict[str, bytes]  # relative path → content

_PER_CORE = 2  # tasks in flight per core of the cluster: enough to keep it busy


def packed(folder: Path) -> Files:
    """Every file below ``folder``."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def unpack(files: Files, folder: Path) -> None:
    """Write ``files`` below ``folder``; nothing escapes it."""
    root = folder.resolve()
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            raise RunError(f"expected checkpoint files below their folder, got {name!r}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@dataclass(frozen=True)
class _Parcel:
    """A need on its way to a node."""

    need: Need
    arrays: bytes | None
    checkpoint: Files | None

    @classmethod
    def of(cls, need: Need) -> _Parcel:
        arrays = need.arrays.read_bytes() if need.arrays else None
        checkpoint = packed(need.checkpoint) if need.checkpoint else None
        return cls(need, arrays, checkpoint)

    def opened(self, folder: Path) -> Need:
        """The need with its files below ``folder``."""
        arrays = checkpoint = None
        if self.arrays is not None:
            folder.mkdir(parents=True, exist_ok=True)
            arrays = folder / "arrays.npz"
            arrays.write_bytes(self.arrays)
        if self.checkpoint is not None:
            checkpoint = folder / "checkpoint"
            unpack(self.checkpoint, checkpoint)
        return replace(self.need, arrays=arrays, checkpoint=checkpoint)


class _Board:
    """An actor on the driver's node: which trials have begun, and what they report."""

    def __init__(self) -> None:
        self._begun: dict[str, float] = {}
        self._reports: dict[str, Report] = {}

    def begun(self, trial_hash: str) -> None:
        self._begun[trial_hash] = time.monotonic()

    def report(self, report: Report) -> None:
        self._reports[report.hash] = report

    def news(self) -> tuple[dict[str, float], list[Report]]:
        """Seconds since each trial began, and the reports since last time."""
        now = time.monotonic()
        reports = list(self._reports.values())
        self._reports.clear()
        return {one: now - begun for one, begun in self._begun.items()}, reports

    def forget(self, trial_hash: str) -> None:
        self._begun.pop(trial_hash, None)


def _there(
    trial: Trial,
    path: list[str],
    board: Any,  # noqa: ANN401 - an actor's handle
    *parcels: _Parcel,
) -> tuple[Outcome, Files | None]:
    """On the node: open the parcels, run the trial, send back what it left."""
    import ray

    prepare()  # the trial's function brings torch in; Ray itself sets OMP_NUM_THREADS
    board.begun.remote(trial.hash)
    sys.path.extend(one for one in path if one not in sys.path)

    def reporter(text: str, scores: Mapping[str, float]) -> None:
        board.report.remote(Report(trial.hash, text, dict(scores)))

    with tempfile.TemporaryDirectory(prefix="microtome-") as name:
        here = Path(name)
        needs = [parcel.opened(here / parcel.need.hash) for parcel in parcels]
        task = ReadyTrial(trial, needs, here / "scratch")
        device = "cuda" if ray.get_gpu_ids() else "cpu"
        context = context_of(task, device=device, slot=0, reporter=reporter)
        outcome = execute(
            task, context, worker=f"ray-{ray.get_runtime_context().get_node_id()[:8]}"
        )
        files = packed(task.scratch) if outcome.checkpoint else None
    return outcome, files


def _imported() -> Any:  # noqa: ANN401 - ray has no types worth naming
    # Before the import: Ray reads these once. It listens on all interfaces, so never without a
    # token unless the person says so.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    # Ray 2.60 would otherwise hide GPUs differently for num_gpus=0 in a later version, and warn.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingExtra.named("ray", "ray") from error
    return ray


class RayExecutor:
    """Trials as Ray Core tasks, on the cluster at ``address`` or on one started here."""

    def __init__(self, *, address: str | None = None, retries: int = 3) -> None:
        self._ray = _imported()
        self._connect(address)
        self.threads = threads_each(n_workers=n_cores())  # a core per trial, as Ray gives it
        self._board = self._new_board()
        self._task = self._ray.remote(max_retries=retries)(_there)
        self._waiting: deque[ReadyTrial] = deque()
        self._flying: dict[Any, ReadyTrial] = {}
        self._parcels: dict[str, Any] = {}
        self._late: set[str] = set()
        self._looked = 0.0
        self._path = [str(Path(one).absolute()) for one in sys.path]
        self._seconds: dict[str, float] = {}

    def _connect(self, address: str | None) -> None:
        options = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address is None:  # a cluster for this run alone
            options["include_dashboard"] = False
        try:
            self._ray.init(address=address, **options)
        except Exception as error:  # a slow start has no narrower one
            if address is None:
                hint = "on a busy machine try again later, or --executor local"
                raise RunError(f"Ray didn't start: {error}", hint) from error
            raise RunError(
                f"no Ray cluster answers at {address}: {error}",
                "start one with `ray start --head`, with the same token (RAY_AUTH_TOKEN)",
            ) from error

    def _new_board(self) -> Any:  # noqa: ANN401 - an actor's handle
        """On the driver's node, so that it doesn't die with another one."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node = self._ray.get_runtime_context().get_node_id()
        here = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        return self._ray.remote(_Board).options(num_cpus=0, scheduling_strategy=here).remote()

    def submit(self, task: ReadyTrial) -> None:
        """Queue a task."""
        self._waiting.append(task)

    def next_finished(self, timeout: float) -> list[Outcome | Report]:
        """Send tasks off, then collect what came back."""
        self._send_off()
        if not self._flying:
            time.sleep(timeout)
            return []
        flying = list(self._flying)
        done, _ = self._ray.wait(flying, num_returns=len(flying), timeout=0)
        if not done:
            done, _ = self._ray.wait(flying, num_returns=1, timeout=timeout)
        events: list[Outcome | Report] = [self._collected(one) for one in done]
        return events + self._read_the_board()

    def close(self) -> None:
        """Abandon what is running and leave the cluster."""
        for reference in self._flying:
            self._ray.cancel(reference, force=True)
        self._flying.clear()
        self._waiting.clear()
        self._ray.shutdown()

    def _send_off(self) -> None:
        room = _PER_CORE * max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        while self._waiting and len(self._flying) < room:
            task = self._waiting.popleft()
            sent = self._task.options(num_gpus=task.trial.gpus, num_cpus=task.trial.cpus)
            parcels = [self._parcel(need) for need in task.needs]
            self._flying[sent.remote(task.trial, self._path, self._board, *parcels)] = task

    def _parcel(self, need: Need) -> Any:  # noqa: ANN401 - an ObjectRef
        """A need in Ray's object store, put there once."""
        if need.hash not in self._parcels:
            self._parcels[need.hash] = self._ray.put(_Parcel.of(need))
        return self._parcels[need.hash]

    def _collected(self, reference: Any) -> Outcome:  # noqa: ANN401 - an ObjectRef
        task = self._flying.pop(reference)
        self._board.forget.remote(task.trial.hash)
        try:
            outcome, files = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            return self._lost(task, error)
        if files is not None:
            try:
                unpack(files, task.scratch)
            except OSError as error:
                raise storage_error(error, task.scratch) from error
        assert isinstance(outcome, Outcome)
        return outcome

    def _lost(self, task: ReadyTrial, error: Exception) -> Outcome:
        late = task.trial.hash in self._late
        seconds = self._seconds.get(task.trial.hash, 0.0)
        text = f"stopped after {seconds:.1f} s, its limit is {task.trial.limit:g} s"
        return Outcome(
            task.trial.hash,
            "timeout" if late else "no-space" if is_full_disk(error) else "failed",
            error=text if late else f"{type(error).__name__}: {error}",
            seconds=seconds,
            worker="ray",
            versions=versions(),
        )

    def _read_the_board(self) -> list[Outcome | Report]:
        """Reports, and trials past their limit; asked once a second."""
        if time.monotonic() - self._looked < 1.0:
            return []
        self._looked = time.monotonic()
        try:
            self._seconds, reports = self._ray.get(self._board.news.remote())
        except self._ray.exceptions.RayError as error:
            raise RunError(
                f"the Ray cluster is gone: {error}",
                "what is stored is intact; when it is up, run the same command again",
            ) from error
        for reference, task in self._flying.items():
            limit, seconds = task.trial.limit, self._seconds.get(task.trial.hash, 0.0)
            if limit is not None and seconds > limit and task.trial.hash not in self._late:
                self._late.add(task.trial.hash)
                self._ray.cancel(reference, force=True)
        return list(reports)
