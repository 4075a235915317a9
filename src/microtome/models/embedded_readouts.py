"""Masked-LM heads that ship, each for a model with one content hash; no torch here."""

from __future__ import annotations

import json
from pathlib import Path

from microtome.errors import RequestError

FOLDER = Path(__file__).resolve().parent.parent / "embedded" / "readouts"
FACTS = "readout.json"


def shipped_folder(content_hash: str) -> Path:
    """The folder of the head that ships for the model with ``content_hash``.

    A model for which none ships is refused, naming those that have one.
    """
    folders = sorted(FOLDER.iterdir())
    for folder in folders:
        if json.loads((folder / FACTS).read_text(encoding="utf-8"))["model"] == content_hash:
            return folder
    raise RequestError(
        f"no head ships for this model, only for {', '.join(folder.name for folder in folders)}",
        "fit one: --readout fit",
    )
