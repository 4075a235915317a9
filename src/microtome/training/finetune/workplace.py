"""Where a fine-tuning under way is stored: ``OUT.finetuning``, next to the output folder ``OUT``.

It holds the request and the last stored state, after an epoch or a few minutes within one, and is
removed when ``OUT`` is complete.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from microtome import files
from microtome.requests import check_same
from microtome.training.checkpoints import SavedState, read_state, write_state

REQUEST = "request.json"
KIND = "a fine-tuning"


class Workplace:
    """The folder of one fine-tuning under way; the folder of another request is refused.

    A state is due ``minutes`` after the one before, besides those after every epoch.
    """

    def __init__(self, out: Path, request: Mapping[str, object], *, minutes: float = 5.0) -> None:
        self.folder = out.with_name(f"{out.name}.finetuning")
        self.request = json.loads(json.dumps(request))
        self._minutes = minutes
        self._written = time.monotonic()
        stored = files.read_json(self.folder / REQUEST)
        if stored is not None:
            check_same(self.folder, stored, self.request, what=KIND)

    def prepare(self) -> None:
        """Make the folder, with the request in it."""
        with files.storing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            files.write_json(self.folder / REQUEST, self.request)

    def is_due(self) -> bool:
        """Whether the last state is old enough for another within an epoch."""
        return time.monotonic() - self._written >= 60 * self._minutes

    def write(self, state: SavedState) -> None:
        """Store a state, then remove the one before."""
        n_epochs, n_steps = (len(state.progress[key]) for key in ("history", "losses"))
        within = f"-step-{n_steps:07d}" if n_steps else ""
        write_state(self.folder, f"epoch-{n_epochs:04d}{within}", state)
        self._written = time.monotonic()

    def read(self) -> SavedState | None:
        """The last whole state; None where there is none yet."""
        return read_state(self.folder)

    def remove(self) -> None:
        """The work is done."""
        shutil.rmtree(self.folder, ignore_errors=True)
