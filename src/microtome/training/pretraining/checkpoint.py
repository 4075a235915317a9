"""Checkpoints: a folder per checkpoint, complete or absent, safetensors only."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from microtome.errors import StorageError

CURRENT = "current.json"


def write(
    folder: Path,
    *,
    weights: Mapping[str, Tensor],
    optimizer: Mapping[str, Tensor],
    progress: dict[str, Any],
) -> None:
    """Write the next checkpoint beside the current one, then switch to it in one rename."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    name = f"step-{progress['step']:07d}"
    target = folder / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    try:
        save_file(
            {n: t.detach().contiguous() for n, t in weights.items()}, target / "weights.safetensors"
        )
        save_file(
            {n: t.detach().contiguous() for n, t in optimizer.items()},
            target / "optimizer.safetensors",
        )
        write_json(target / "progress.json", progress)
        for file in target.iterdir():
            _flush(file)
        write_json(folder / CURRENT, {"name": name})
    except OSError as error:
        raise StorageError(
            f"can't write checkpoint {target}: {error}",
            "free some space; the last checkpoint is intact",
        ) from error
    for old in folder.glob("step-*"):
        if old != target:
            shutil.rmtree(old, ignore_errors=True)


def read(folder: Path) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Any]] | None:
    """Weights, optimiser state and progress of the current checkpoint; None where there is none."""
    from safetensors.torch import load_file

    current = folder / CURRENT
    if not current.exists():
        return None
    target = folder / json.loads(current.read_text())["name"]
    return (
        load_file(target / "weights.safetensors"),
        load_file(target / "optimizer.safetensors"),
        json.loads((target / "progress.json").read_text()),
    )


def write_json(path: Path, value: Any) -> None:  # noqa: ANN401
    """A JSON file that is whole or absent: temporary name, flush to disk, rename."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    _flush(temporary)
    temporary.replace(path)


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
