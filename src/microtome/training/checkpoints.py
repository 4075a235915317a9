"""The state of a training under way: a folder per stored state, safetensors and JSON, no pickles.

A state's folder gets its name when it is whole, so a kill at any moment leaves the last whole one.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from microtome import files

PROGRESS = "progress.json"


@dataclass(frozen=True, eq=False)
class SavedState:
    """What a training needs to resume. ``best`` are the weights of an earlier, better epoch."""

    weights: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    progress: Mapping[str, Any]
    best: Mapping[str, Tensor] = field(default_factory=dict)


def write_state(folder: Path, name: str, state: SavedState) -> None:
    """Store ``state`` as ``folder/name``, then remove the states before it.

    Names are read in alphabetical order: ``epoch-0002`` follows ``epoch-0001``.
    """
    temporary = folder / f"{files.TEMPORARY}{name}"
    with files.storing(folder):
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        for part in ("weights", "optimizer", "best"):
            tensors = getattr(state, part)
            if tensors:
                contiguous = {key: value.detach().contiguous() for key, value in tensors.items()}
                safetensors.torch.save_file(contiguous, temporary / f"{part}.safetensors")
        files.write_json(temporary / PROGRESS, dict(state.progress))
        files.move_folder(temporary, folder / name)
    for other in _states(folder):
        if other.name != name:
            shutil.rmtree(other, ignore_errors=True)


def read_state(folder: Path) -> SavedState | None:
    """The last state that was stored whole; None where there is none."""
    states = _states(folder)
    if not states:
        return None
    parts = {
        part: safetensors.torch.load_file(file) if file.is_file() else {}
        for part in ("weights", "optimizer", "best")
        for file in [states[-1] / f"{part}.safetensors"]
    }
    return SavedState(**parts, progress=files.read_json(states[-1] / PROGRESS))


def _states(folder: Path) -> list[Path]:
    whole = [file.parent for file in folder.glob(f"*/{PROGRESS}")]
    return sorted(state for state in whole if not state.name.startswith(files.TEMPORARY))
