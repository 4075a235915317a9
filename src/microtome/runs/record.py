"""A record: what a trial gave, as it stands in records/HASH.json."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from microtome.errors import StorageError
from microtome.runs.trial import Trial

SCHEMA_VERSION = 1
ROW_COLUMNS = ("experiment", "model", "task")

Status = Literal["ok", "failed", "diverged", "timeout", "blocked"]


@dataclass(frozen=True)
class Record:
    """One trial's record. ``columns`` stand in every row; ``blocked`` means a need has failed."""

    hash: str
    status: Status
    function: str
    request: dict[str, Any]
    content: dict[str, str]
    needs: list[str]
    name: str = ""  # the trial's logical name; empty in records older than it
    label: str = ""
    columns: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    arrays: bool = False
    checkpoint: bool = False
    error: str | None = None
    traceback: str | None = None
    seconds: float = 0.0
    cpu_seconds: float = 0.0  # of all threads; 0 in records older than it
    worker: str = ""
    attempts: int = 1
    versions: dict[str, str] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    @property
    def ok(self) -> bool:
        """Whether the trial gave its numbers."""
        return self.status == "ok"

    @property
    def title(self) -> str:
        """The label for people, or the start of the hash."""
        return self.label or self.hash[:12]

    def to_bytes(self) -> bytes:
        """The record as JSON; never NaN, and ASCII: hostile text may hold half a character."""
        # dataclasses.asdict copies deeply, which costs more than writing the file.
        return json.dumps(vars(self), allow_nan=False).encode()


_STATUSES = set(get_args(Status))
_TEXT, _NUMBER = (str,), (int, float)
_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("hash", "status", "function", "name", "label", "worker"), _TEXT),
    **dict.fromkeys(("error", "traceback"), (str, type(None))),
    **dict.fromkeys(("request", "content", "columns", "summary", "versions"), (dict,)),
    **dict.fromkeys(("needs", "rows"), (list,)),
    **dict.fromkeys(("arrays", "checkpoint"), (bool,)),
    **dict.fromkeys(("seconds", "cpu_seconds"), _NUMBER),
    "attempts": (int,),
}
"""What each part may be: somebody may have edited the file."""


def identity_of(trial: Trial) -> dict[str, Any]:
    """The part of a record that comes from the trial."""
    return {
        "hash": trial.hash,
        "function": trial.function,
        "request": dict(trial.request),
        "content": dict(trial.content),
        "needs": list(trial.needs),
        "name": trial.name,
        "label": trial.label,
        # Experiment, model and task of its rows: from its columns, else from its request.
        "columns": {name: trial.request.get(name) for name in ROW_COLUMNS} | dict(trial.columns),
    }


def blocked(trial: Trial, need: str, why: str) -> Record:
    """The record of a trial that can't run because ``need`` has no result."""
    error = f"needs {need}, which is {why}"
    return Record(**identity_of(trial), status="blocked", error=error, attempts=0)


def _content(path: str) -> str:
    # Twice as fast as Path.read_text, and a run may hold 10,000 of them.
    descriptor = os.open(path, os.O_RDONLY)
    try:
        parts = [os.read(descriptor, 2**16)]
        while len(parts[-1]) == 2**16:
            parts.append(os.read(descriptor, 2**16))
    finally:
        os.close(descriptor)
    return b"".join(parts).decode()


def read_record(path: str) -> Record:
    """The record in ``path``; StorageError names the file when it can't be read."""
    try:
        data = json.loads(_content(path), parse_constant=_refuse_constant)
        if not isinstance(data, dict):
            raise TypeError("not a JSON object")
        check_schema(data, path)
        record = Record(**data)
        _check(record, path)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise StorageError(
            f"the record {path} can't be read: {error}",
            "it wasn't written by Microtome as it stands; restore it, or delete it to run its "
            "trial again",
        ) from error
    except OSError as error:
        raise StorageError(f"the record {path} can't be read: {error.strerror}") from error
    return record


def _check(record: Record, path: str) -> None:
    if not path.endswith(f"{os.sep}{record.hash}.json"):
        raise ValueError(f"it holds trial {record.hash}")
    if record.status not in _STATUSES:
        raise ValueError(f"its status is {record.status!r}")
    for name, kinds in _KINDS.items():
        if not isinstance(getattr(record, name), kinds):
            raise TypeError(f"its {name} can't be {type(getattr(record, name)).__name__}")
    if not all(isinstance(row, dict) for row in record.rows):
        raise TypeError("its rows must be dictionaries")
    texts = (*record.needs, *record.content.values(), *record.versions.values())
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("its needs, content and versions must be texts")


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def check_schema(data: Mapping[str, Any], path: str | Path) -> None:
    """Refuse what this version can't read, in words. Older schemas would be lifted here."""
    version = data.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise StorageError(
            f"{path} has schema_version {version!r}, which no Microtome has written",
            "choose another folder",
        )
    if version > SCHEMA_VERSION:
        raise StorageError(
            f"{path} has schema_version {version}; this Microtome reads up to {SCHEMA_VERSION}",
            "update Microtome, or choose another folder",
        )
