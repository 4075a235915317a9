"""What must hold of a job's place whatever has happened to it: nothing torn, nothing done twice.

A place is a folder with the run in ``run`` and, of a trim, the chosen model in ``out``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
from safetensors import SafetensorError, safe_open

from microtome.errors import MicrotomeError
from microtome.models.provenance import FILES, HISTORY
from microtome.runs.record import read_record

TIMED = ("speed", "speed_low", "speed_high", "latency_ms", "batch_ms")
"""Columns that are measured anew by every run."""

Stored = dict[str, tuple[int, int, str]]


def digest(path: Path) -> str:
    """The sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def stored(place: Path) -> Stored:
    """Every record there is: which file, written when, and its content."""
    found = {}
    for path in (place / "run" / "records").glob("[!.]*.json"):
        known = path.stat()
        found[path.name] = (known.st_ino, known.st_mtime_ns, digest(path))
    return found


def kept(before: Stored, after: Stored) -> Iterator[str]:
    """Records that are gone, or that were written a second time."""
    for name, was in before.items():
        if name not in after:
            yield f"record {name} is gone"
        elif after[name] != was:
            yield f"record {name} was written twice"


def torn(place: Path) -> Iterator[str]:
    """Files that claim to be finished and can't be read."""
    run = place / "run"
    for path in _finished(run):
        try:
            _read(path)
        except (ValueError, OSError, MicrotomeError, SafetensorError, EOFError) as error:
            yield f"{path.relative_to(place)} is torn: {error}"
    for record in map(_record, (run / "records").glob("[!.]*.json")):
        for kind, suffix in (("arrays", ".npz"), ("checkpoint", "")):
            folder = "checkpoints" if kind == "checkpoint" else kind
            if record.get(kind) and not (run / folder / f"{record['hash']}{suffix}").exists():
                yield f"record {record['hash']} speaks of {kind} that aren't there"
    yield from torn_model(place / "out")


def torn_model(out: Path) -> Iterator[str]:
    """What is wrong with a saved model's folder, if there is one: its files are those it lists."""
    if not out.exists():
        return
    try:
        listed = json.loads((out / HISTORY).read_text())[FILES]
        wrong = [name for name, hashed in listed.items() if not _is(out / name, hashed)]
    except (OSError, ValueError, KeyError) as error:
        wrong = [str(error)]
    if wrong:
        yield f"{out.name} is torn: {', '.join(wrong)}"


def essence(place: Path) -> dict[str, Any]:
    """What must be equal however often a run was disturbed: rows, answers, weights."""
    run = place / "run"
    table = pyarrow.parquet.read_table(run / "results.parquet")
    timed = [name for name in TIMED if name in table.column_names]
    rows = {"rows": table.drop_columns(timed).to_pylist()}
    weights = {
        str(path.relative_to(place)): digest(path)
        for folder in (run / "checkpoints", place / "out")
        for path in folder.rglob("*.safetensors")
    }
    return rows | weights | {path.name: _answers(path) for path in (run / "arrays").iterdir()}


def differences(place: Path, undisturbed: dict[str, Any]) -> Iterator[str]:
    """What differs from the undisturbed run, and what a finished run leaves lying about."""
    own = essence(place)
    for name in sorted(own.keys() | undisturbed.keys()):
        if own.get(name) != undisturbed.get(name):
            yield f"{name} differs from the undisturbed run's"
    for path in place.rglob(".tmp-*"):
        yield f"{path.relative_to(place)} was left behind"


def _finished(run: Path) -> Iterator[Path]:
    for path in run.rglob("*"):
        inside = path.relative_to(run).parts
        if path.is_file() and not any(part.startswith(".") for part in inside):
            yield path


def _read(path: Path) -> None:
    match path.suffix:
        case ".json" if path.parent.name == "records":
            read_record(str(path))
        case ".json":
            json.loads(path.read_text())
        case ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                [arrays[name] for name in arrays]
        case ".parquet":
            pyarrow.parquet.read_table(path)
        case ".safetensors":
            with safe_open(path, "pt") as tensors:
                [tensors.get_tensor(name) for name in tensors.keys()]  # noqa: SIM118
        case ".html" if not path.read_text().rstrip().endswith("</html>"):
            raise ValueError("no </html>")


def _record(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text())
    assert isinstance(content, dict)
    return content


def _is(path: Path, hashed: str) -> bool:
    return path.is_file() and digest(path) == hashed.removeprefix("sha256:")


def _answers(path: Path) -> dict[str, tuple[tuple[int, ...], bytes]]:
    with np.load(path, allow_pickle=False) as arrays:
        names = sorted(set(arrays) - {"speeds"})
        return {name: (arrays[name].shape, arrays[name].tobytes()) for name in names}
