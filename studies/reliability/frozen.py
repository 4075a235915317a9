"""The package as it is now: a source tree may change while a siege goes on."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "microtome"


def frozen_source() -> str:
    """A copy of the package to import instead, by workers too; gone when this process ends."""
    place = tempfile.mkdtemp(prefix="microtome-source-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    shutil.copytree(SOURCE, Path(place) / "microtome")
    return place
