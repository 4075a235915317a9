"""Runs trials into a folder: orders, skips, hands out, stores, resumes.

The loop knows nothing about models, processes or clusters: it feeds an executor and writes what
comes back. It is the only writer of the run.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from microtome import files
from microtome.errors import StorageError
from microtome.runs.executor import Executor, Outcome, ReadyTrial, Report
from microtome.runs.interrupts import Interrupts, how_to_resume, stopped
from microtome.runs.order import Agenda, check_needs, distinct
from microtome.runs.progress import Progress
from microtome.runs.record import Record, blocked, identity_of
from microtome.runs.store import Finished, Store
from microtome.runs.table import ordered_rows, parquet_bytes
from microtome.runs.trackers import Tracker
from microtome.runs.trial import Trial

_WAIT_SECONDS = 0.25
_BROKEN = (BadZipFile, zlib.error)  # what reading an archive raises besides Python's own errors


@dataclass(frozen=True)
class RunResult:
    """A finished pass over a run: its records in the order of the trials."""

    folder: Path
    request: Mapping[str, Any]
    records: Mapping[str, Record]
    n_run: int = 0
    n_trials: int = 0

    @property
    def ok(self) -> bool:
        """Whether every planned trial gave its numbers."""
        return self.n_trials == self.n_ok

    @property
    def n_ok(self) -> int:
        """How many trials gave their numbers."""
        return sum(record.ok for record in self.records.values())

    @property
    def failed(self) -> list[Record]:
        """The records that are not ok, whatever the reason."""
        return [record for record in self.records.values() if not record.ok]

    def cause_of(self, record: Record) -> Record:
        """What kept a trial from its numbers: itself, or the needed trial that failed."""
        seen: set[str] = set()  # records that somebody edited may name each other
        while record.status == "blocked" and record.hash not in seen:
            seen.add(record.hash)
            needed = (self.records[need] for need in record.needs if need in self.records)
            record = next((one for one in needed if not one.ok), record)
        return record

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The tidy rows of results.parquet."""
        return ordered_rows(self.records.values())

    @property
    def facts(self) -> dict[str, Any]:
        """What is needed to get the numbers again: versions, machine, request, hashes of inputs."""
        stored = Store(self.folder).read_run()
        hashes: dict[str, dict[str, None]] = {}
        for record in self.records.values():
            for name, value in record.content.items():
                hashes.setdefault(name, {})[value] = None
        content = {name: ", ".join(values) for name, values in hashes.items()}
        kept = ("versions", "commit", "machine", "threads", "notes", "request")
        return {key: stored[key] for key in kept if key in stored} | {"content": content}

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know of what was read."""
        return tuple(Store(self.folder).read_run().get("notes", ()))

    def places(self, key: str) -> list[str]:
        """Where trials found what they call ``key`` (``data``, ``model``), in their order."""
        return list(Store(self.folder).read_run()["sources"].get(key, {}))

    def arrays(self, trial_hash: str) -> dict[str, Any]:
        """The arrays of a trial; empty when it has none."""
        import numpy as np

        path = Store(self.folder).path_of("arrays", trial_hash)
        if not self.records[trial_hash].arrays:
            return {}
        try:
            # A file that numpy opens itself stays open where it is broken.
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                return dict(stored)
        except (OSError, ValueError, EOFError, KeyError, RuntimeError, *_BROKEN) as error:
            raise StorageError(
                f"{path} can't be read: {error}",
                "restore it, or delete it and its record to run its trial again",
            ) from error

    def checkpoint(self, trial_hash: str) -> Path | None:
        """The checkpoint folder of a trial, if it left one."""
        path = Store(self.folder).path_of("checkpoints", trial_hash)
        return path if self.records[trial_hash].checkpoint else None


@dataclass
class _Pass:
    """One pass of the runner over a locked folder."""

    store: Store
    executor: Executor
    trials: dict[str, Trial]
    records: dict[str, Record]
    progress: Progress
    tracker: Tracker | None
    retry_failed: bool
    n_run: int = 0
    under_way: set[str] = field(default_factory=set)
    blocked: set[str] = field(default_factory=set)

    def run(self, interrupts: Interrupts) -> None:
        pending = [trial for trial in self.trials.values() if not self._settled(trial)]
        done = {one for one, record in self.records.items() if record.ok}
        self.agenda = Agenda(pending, done)
        self._block_by_old_failures(pending)
        self._submit(self.agenda.ready)
        while self.under_way and interrupts.asked is None:
            events = self.executor.next_finished(_WAIT_SECONDS)
            for report in (event for event in events if isinstance(event, Report)):
                self.progress.report(self.trials[report.hash].title, report.text, report.scores)
            self._store([event for event in events if isinstance(event, Outcome)])

    def _settled(self, trial: Trial) -> bool:
        """Whether there is nothing to do for it in this pass."""
        record = self.records.get(trial.hash)
        if record is None or record.status == "blocked":
            return False
        return record.ok or not self.retry_failed

    def _block_by_old_failures(self, pending: Sequence[Trial]) -> None:
        """What needs a trial that failed in an earlier pass, and isn't retried, can't run."""
        to_run = {trial.hash for trial in pending}
        lacking = {need for trial in pending for need in trial.needs if need not in to_run}
        failed = [need for need in lacking if not self.records[need].ok]
        self._save_blocked(failed)

    def _submit(self, trials: Iterable[Trial]) -> None:
        for trial in trials:
            needs = [self.store.need(self.records[need]) for need in trial.needs]
            self.under_way.add(trial.hash)
            self.executor.submit(ReadyTrial(trial, needs, self.store.scratch_of(trial.hash)))

    def _store(self, outcomes: Sequence[Outcome]) -> None:
        if not outcomes:
            return
        no_space = [one for one in outcomes if one.status == "no-space"]
        batch = [self._finished(one) for one in outcomes if one.status != "no-space"]
        if batch:
            self.store.save(batch)
        for one in batch:
            self._account(one)
        if no_space:
            raise StorageError(
                f"no space left while trial {self.trials[no_space[0].hash].title} was writing "
                f"({no_space[0].error})",
                "what is stored is intact; make room, then run the same command to resume",
            )

    def _finished(self, outcome: Outcome) -> Finished:
        trial = self.trials[outcome.hash]
        measured = {
            "arrays": bool(outcome.arrays),
            "seconds": round(outcome.seconds, 6),
            "cpu_seconds": round(outcome.cpu_seconds, 6),
        }
        record = Record(**(identity_of(trial) | vars(outcome) | measured))
        scratch = self.store.scratch_of(outcome.hash)
        return Finished(record, outcome.arrays, scratch if outcome.checkpoint else None)

    def _account(self, finished: Finished) -> None:
        record = finished.record
        self.records[record.hash] = record
        self.under_way.discard(record.hash)
        self.n_run += 1
        if finished.checkpoint is None:
            files.remove(self.store.scratch_of(record.hash))
        self.progress.finished(record)
        if self.tracker:
            self.tracker.log(record, self.n_run)
        if record.ok:
            self._submit(self.agenda.done(record.hash))
        else:
            self._save_blocked([record.hash])

    def _save_blocked(self, failed: Iterable[str]) -> None:
        new: dict[str, Record] = {}
        for need in failed:
            for trial, lacking in self.agenda.blocked_by(need):
                if trial.hash not in self.blocked:
                    self.blocked.add(trial.hash)
                    why = "blocked" if lacking in self.blocked else self.records[lacking].status
                    new[trial.hash] = blocked(trial, lacking, why)
        fresh = [Finished(r, {}) for r in new.values() if self.records.get(r.hash) != r]
        if fresh:
            self.store.save(fresh)
        self.records.update(new)
        for record in new.values():
            self.progress.finished(record)


def run_trials(
    trials: Iterable[Trial],
    folder: Path,
    request: Mapping[str, Any],
    *,
    executor: Executor,
    progress: Progress,
    retry_failed: bool = False,
    tracker: Tracker | None = None,
    interrupts: Interrupts | None = None,
    notes: Sequence[str] = (),
    whole: bool = False,
) -> RunResult:
    """Run what isn't done yet; see ``microtome.runs.run``. Closes the executor."""
    store, planned = Store(folder), distinct(trials)
    interrupts = interrupts or Interrupts()
    one: _Pass | None = None
    try:
        with interrupts:
            store.lock()
            records = store.read_records()
            check_needs(planned, records)
            store.begin(
                request,
                list(planned.values()),
                threads=executor.threads,
                notes=notes,
                whole=whole,
            )
            one = _Pass(store, executor, planned, records, progress, tracker, retry_failed)
            with progress.over(planned, records, retry_failed=retry_failed):
                one.run(interrupts)
            if interrupts.asked is not None:
                raise stopped(interrupts.asked, _n_stored(one), len(planned), folder)
            run = store.read_run()
            result = _result(folder, run, records, one.n_run)
            store.write_results(parquet_bytes(result.rows))
            return result
    except KeyboardInterrupt as error:
        n_stored = _n_stored(one) if one else 0
        by = interrupts.asked or "Ctrl-C"
        raise stopped(by, n_stored, len(planned), folder) from error
    except StorageError as error:
        if one is None:
            raise
        raise StorageError(
            f"{error.message}; {_n_stored(one)} of {len(planned)} trials are stored",
            f"{error.hint}. {how_to_resume(folder)}",
        ) from error
    finally:
        executor.close()
        store.release()


def _n_stored(one: _Pass) -> int:
    stored = (one.records.get(trial_hash) for trial_hash in one.trials)
    return sum(record is not None and record.status != "blocked" for record in stored)


def _result(
    folder: Path, run: Mapping[str, Any], records: Mapping[str, Record], n_run: int
) -> RunResult:
    ordered = {one: records[one] for one in run["trials"] if one in records}
    n_trials = len(run["trials"])
    return RunResult(Path(folder), run["request"], ordered, n_run, n_trials)


def open_run(folder: str | Path) -> RunResult:
    """Read a run, finished or not, without touching it; a driver may be writing to it."""
    store = Store(Path(folder))
    return _result(store.folder, store.read_run(), store.read_records(), 0)
