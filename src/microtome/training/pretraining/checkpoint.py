"""Checkpoints: a folder per checkpoint, complete or absent, safetensors only."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from microtome.training.storage import storing, sync, write_json

CURRENT = "current.json"
KEPT = "what was done up to the last checkpoint is kept"


def write(
    folder: Path,
    *,
    weights: Mapping[str, Tensor],
    optimizer: Mapping[str, Tensor],
    progress: dict[str, Any],
) -> None:
    """Write the next checkpoint beside the current one, then switch to it in one rename."""
    from safetensors.torch import save_file

    name = f"step-{progress['step']:07d}"
    target = folder / name
    with storing(folder, kept=KEPT):
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        for part, tensors in (("weights", weights), ("optimizer", optimizer)):
            contiguous = {n: t.detach().contiguous() for n, t in tensors.items()}
            save_file(contiguous, target / f"{part}.safetensors")
        write_json(target / "progress.json", progress)
        for file in target.iterdir():
            sync(file)
        write_json(folder / CURRENT, {"name": name})
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
