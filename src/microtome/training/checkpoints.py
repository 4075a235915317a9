"""Where a fine-tuning can go on: one folder per finished epoch, safetensors and JSON only.

``OUT.finetuning`` lies beside the output folder ``OUT`` and goes when that is complete. An epoch's
folder gets its name when it is whole, so a kill at any moment leaves the last whole one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from microtome.errors import RequestError, StorageError
from microtome.training.storage import TEMPORARY, storing, sync, write_json

REQUEST = "request.json"
PROGRESS = "progress.json"
_EPOCH = "epoch-"
_KEPT = "the epochs before are kept"


@dataclass(frozen=True, eq=False)
class Saved:
    """What an epoch left behind."""

    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    best: dict[str, Tensor]  # empty unless the best epoch is kept and isn't the last
    progress: dict[str, Any]


class Workplace:
    """The folder of one fine-tuning under way; another request's folder is refused."""

    def __init__(self, out: Path, request: Mapping[str, object]) -> None:
        self.folder = out.with_name(f"{out.name}.finetuning")
        self.request = json.loads(json.dumps(request))
        stored = read_json(self.folder / REQUEST)
        if stored is not None:
            refuse_difference(self.folder, stored, self.request)

    def prepare(self) -> None:
        """Make the folder, with the request in it."""
        with storing(self.folder, kept=_KEPT):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_json(self.folder / REQUEST, self.request)

    def write(self, saved: Saved) -> None:
        """Store an epoch, then drop the one before."""
        from safetensors.torch import save_file

        name = f"{_EPOCH}{len(saved.progress['history']):04d}"
        temporary = self.folder / f"{TEMPORARY}{name}"
        with storing(self.folder, kept=_KEPT):
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            for part in ("weights", "optimizer", "best"):
                tensors = getattr(saved, part)
                if tensors:
                    contiguous = {n: t.detach().contiguous() for n, t in tensors.items()}
                    save_file(contiguous, temporary / f"{part}.safetensors")
            write_json(temporary / PROGRESS, saved.progress)
            for file in temporary.iterdir():
                sync(file)
            temporary.rename(self.folder / name)
        for old in self.folder.glob(f"{_EPOCH}*"):
            if old.name != name:
                shutil.rmtree(old, ignore_errors=True)

    def read(self) -> Saved | None:
        """The last whole epoch; None where there is none yet."""
        from safetensors.torch import load_file

        folders = sorted(self.folder.glob(f"{_EPOCH}*"))
        if not folders:
            return None
        parts = {}
        for part in ("weights", "optimizer", "best"):
            file = folders[-1] / f"{part}.safetensors"
            parts[part] = load_file(file) if file.is_file() else {}
        progress = read_json(folders[-1] / PROGRESS)
        if progress is None:
            raise StorageError(f"{folders[-1]} is not whole", "remove it and start again")
        return Saved(**parts, progress=progress)

    def remove(self) -> None:
        """The work is done."""
        shutil.rmtree(self.folder, ignore_errors=True)


def refuse_difference(
    folder: Path, stored: Mapping[str, object], asked: Mapping[str, object]
) -> None:
    """Raise where a folder belongs to another request, naming every setting that differs."""
    names = sorted(set(stored) | set(asked))
    differences = [
        f"{name} is {_shown(stored.get(name))} there, {_shown(asked.get(name))} asked for"
        for name in names
        if stored.get(name) != asked.get(name)
    ]
    if differences:
        raise RequestError(
            f"{folder} holds another fine-tuning: {'; '.join(differences)}",
            "give another output folder, or remove this one first",
        )


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 40 else f"{text[:16]}…"


def read_json(file: Path) -> dict[str, Any] | None:
    """A JSON object; None where the file isn't there."""
    if not file.is_file():
        return None
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StorageError(f"{file} isn't JSON ({error})", "remove it and start again") from error
    return content if isinstance(content, dict) else None
