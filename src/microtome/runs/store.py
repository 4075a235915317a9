"""A run's folder.

RUN/
├── run.json            schema_version, request, trials in order, sources, versions, commit, machine
├── records/HASH.json   one per trial; a file that exists is complete
├── arrays/HASH.npz     written before its record
├── checkpoints/HASH/   written before its record
└── results.parquet     all rows of the records that are ok

The driver is the only writer. Names that begin with .tmp- are unfinished and mean nothing.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microtome import files
from microtome.errors import RequestError, StorageError
from microtome.requests import canonical_json, check_same, widens
from microtome.runs.machine import commit, machine, versions
from microtome.runs.record import SCHEMA_VERSION, Record, check_schema, read_record
from microtome.runs.result import Need, non_finite
from microtome.runs.trial import Trial

LOCK = ".lock"


class FolderLock:
    """An exclusive lock on ``folder/.lock``, held until ``release``."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK
        # Not inheritable (Python's default): a worker never keeps the lock of a dead driver.
        self._descriptor = os.open(self.path, os.O_CREAT | os.O_RDWR, 0o666)
        try:
            _take(self._descriptor)
        except OSError as error:
            holder = os.read(self._descriptor, 20).decode(errors="replace").strip() or "unknown"
            os.close(self._descriptor)
            raise StorageError(
                f"{folder} is in use by another process (pid {holder})",
                "wait for it, or stop it, or choose another folder",
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let the next driver in. The file stays: removing it would race with the next holder."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> None:
        # Far past the text, so that whoever is refused can still read the pid.
        os.lseek(descriptor, 1024, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


FOLDERS = ("records", "arrays", "checkpoints")


@dataclass(frozen=True)
class Finished:
    """A record with what belongs to it: arrays, and a folder that becomes the checkpoint."""

    record: Record
    arrays: Mapping[str, Any]
    checkpoint: Path | None = None


def array_bytes(arrays: Mapping[str, Any]) -> bytes:
    """The arrays as an .npz that loads without pickle."""
    import numpy as np

    buffer = io.BytesIO()
    np.savez(buffer, **dict(arrays))
    return buffer.getvalue()


class Store:
    """A run's folder, opened for reading; ``lock`` before anything is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self._lock: FolderLock | None = None

    # --- paths

    def path_of(self, kind: str, trial_hash: str) -> Path:
        """Where a trial's record, arrays or checkpoint is, present or not."""
        suffix = {"records": ".json", "arrays": ".npz", "checkpoints": ""}[kind]
        return self.folder / kind / f"{trial_hash}{suffix}"

    def scratch_of(self, trial_hash: str) -> Path:
        """Where a worker writes what may become the checkpoint of a trial."""
        return self.folder / "checkpoints" / f"{files.TEMPORARY}{trial_hash}"

    # --- starting and going on

    def lock(self) -> None:
        """Make the folder, keep other drivers out, remove what a kill left unfinished."""
        if self.folder.exists() and not self.folder.is_dir():
            raise RequestError(f"{self.folder} is a file, expected a new folder or that of a run")
        self._check_ours()
        try:
            for name in FOLDERS:
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(self.folder)
            for folder in (self.folder, *(self.folder / name for name in FOLDERS)):
                for stray in list(folder.glob(f"{files.TEMPORARY}*")):
                    files.remove(stray)
        except OSError as error:
            raise files.storage_error(error, self.folder) from error

    def _check_ours(self) -> None:
        """Refuse a folder with something of somebody else's in it: a report would replace files."""
        if not self.folder.is_dir() or (self.folder / "run.json").exists():
            return
        ours = {*FOLDERS, LOCK}  # what a run has that was killed before run.json was written
        names = (entry.name for entry in self.folder.iterdir())
        if any(name not in ours and not name.startswith(files.TEMPORARY) for name in names):
            raise RequestError(
                f"the folder {self.folder} is not empty and holds no run; nothing is overwritten",
                "give a new folder, or that of a run",
            )

    def release(self) -> None:
        """Let other drivers in."""
        if self._lock:
            self._lock.release()
            self._lock = None

    def begin(
        self,
        request: Mapping[str, Any],
        trials: Sequence[Trial],
        *,
        threads: int,
        notes: Sequence[str] = (),
        whole: bool = False,
    ) -> None:
        """Write run.json, or check that ``request`` resumes the one that is there.

        Trials that were asked for before stay part of the run, unless these are the ``whole``.
        """
        wanted = json.loads(canonical_json(request))
        old = self.read_run() if (self.folder / "run.json").exists() else None
        sources = _sources(trials)
        order = [trial.hash for trial in trials]
        if old is not None:
            self._check_goes_on(old, wanted, sources)
            asked = set(order)
            order += [] if whole else [one for one in old["trials"] if one not in asked]
            sources = _merged(old["sources"], sources)
            notes = tuple(dict.fromkeys([*old.get("notes", ()), *notes]))
        run = {
            "schema_version": SCHEMA_VERSION,
            "request": wanted,
            "trials": order,
            "sources": sources,
            "versions": versions(),
            "commit": commit(),
            "machine": machine(),
            "threads": threads,
            "notes": list(notes),
        }
        if run != old:
            text = json.dumps(run, indent=1, allow_nan=False)  # ASCII, as records are
            files.write_bytes(self.folder / "run.json", text.encode())

    def _check_goes_on(
        self, old: Mapping[str, Any], wanted: Mapping[str, Any], sources: Mapping[str, Any]
    ) -> None:
        check_same(
            self.folder,
            old["request"],
            wanted,
            what="a run",
            hint="repeat or widen the request of its run.json, or choose another folder",
            continues=widens,
        )
        for key, places in sources.items():
            for place, now in places.items():
                before = old["sources"].get(key, {}).get(place, now)
                if before != now:
                    raise RequestError(
                        f"the {key} in {place} has changed since {self.folder} was begun "
                        f"(content {before[:12]}, now {now[:12]})",
                        "choose another folder, or put the old content back",
                    )

    def read_run(self) -> dict[str, Any]:
        """run.json, checked."""
        path = self.folder / "run.json"
        try:
            run = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError) as error:
            why = "it has no run.json" if self.folder.exists() else "there is no such folder"
            raise RequestError(
                f"{self.folder} is not a run: {why}", "give the folder of a run"
            ) from error
        except (OSError, ValueError, RecursionError) as error:
            raise StorageError(f"{path} can't be read: {error}", "restore it") from error
        if not isinstance(run, dict):
            raise StorageError(f"{path} can't be read: not a JSON object", "restore it")
        check_schema(run, path)
        missing = {"request", "trials", "sources"} - run.keys()
        if missing:
            raise StorageError(f"{path} lacks {', '.join(sorted(missing))}", "restore it")
        wrong = [name for name, is_right in _SHAPE.items() if not is_right(run.get(name))]
        if wrong:
            raise StorageError(
                f"{path} can't be read: {', '.join(wrong)} of another shape", "restore it"
            )
        return run

    # --- records

    def read_records(self) -> dict[str, Record]:
        """Every record of the folder, by hash; one that can't be read stops us, by name."""
        folder = self.folder / "records"
        if not folder.exists():
            return {}
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(".json"))
        whole = [name for name in names if not name.startswith(files.TEMPORARY)]
        return {
            name.removesuffix(".json"): read_record(f"{folder}{os.sep}{name}") for name in whole
        }

    def save(self, finished: Iterable[Finished]) -> None:
        """Store a batch: checkpoints and arrays first, then the records that speak of them."""
        batch = list(finished)
        self._need_lock()
        for one in batch:
            if one.checkpoint is not None:
                files.move_folder(one.checkpoint, self.path_of("checkpoints", one.record.hash))
        arrays = {f"{b.record.hash}.npz": array_bytes(b.arrays) for b in batch if b.arrays}
        if arrays:
            files.write_all(self.folder / "arrays", arrays)
        records = {f"{one.record.hash}.json": one.record.to_bytes() for one in batch}
        files.write_all(self.folder / "records", records)

    def write_results(self, content: bytes) -> None:
        """Write results.parquet, unless it stands there already."""
        self._need_lock()
        path = self.folder / "results.parquet"
        if not path.exists() or path.read_bytes() != content:
            files.write_bytes(path, content)

    def _need_lock(self) -> None:
        assert self._lock is not None, "only the driver that holds the lock writes"

    def need(self, record: Record) -> Need:
        """What a finished trial offers to those that need it."""
        arrays = self.path_of("arrays", record.hash) if record.arrays else None
        folder = self.path_of("checkpoints", record.hash) if record.checkpoint else None
        return Need(record.hash, tuple(record.rows), record.summary, arrays, folder, record.seconds)


def _is_text_by_text(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


_SHAPE: dict[str, Callable[[Any], bool]] = {
    "request": lambda value: isinstance(value, dict) and not any(non_finite(value)),
    "trials": _are_texts,
    "sources": lambda value: isinstance(value, dict) and all(map(_is_text_by_text, value.values())),
    "notes": lambda value: value is None or _are_texts(value),
}
"""What is read out of run.json, and its shape: somebody may have edited the file."""


def _sources(trials: Iterable[Trial]) -> dict[str, dict[str, str]]:
    """Which content was found at which path: {"model": {path: hash}}."""
    found: dict[str, dict[str, str]] = {}
    for trial in trials:
        for key in trial.where.keys() & trial.content.keys():
            found.setdefault(key, {})[trial.where[key]] = trial.content[key]
    return found


def _merged(
    old: Mapping[str, Mapping[str, str]], new: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    return {
        key: {**old.get(key, {}), **new.get(key, {})} for key in sorted(old.keys() | new.keys())
    }
