"""What the studies share: real data, and `microtome` commands whose documents are read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("MICROTOME_TEST_DATA", ROOT.parent / "shared"))
DATA = SHARED / "data"


def microtome(*arguments: object) -> dict:
    """The document that a command prints; a command that fails ends the study with its message."""
    document = _document(*arguments)
    if "error" in document:
        sys.exit(document["error"]["message"])
    return document


def _document(*arguments: object) -> dict:
    command = [sys.executable, "-c", "from microtome.cli import main; main()", *map(str, arguments)]
    done = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout:
        sys.exit(
            f"microtome {' '.join(map(str, arguments))} printed nothing, exit {done.returncode}"
        )
    return json.loads(done.stdout)


def run_study(name: str, arguments: Iterable[str], out: Path) -> dict:
    """One `microtome run` into ``out/name``; prints its finding, or why it failed, and its time."""
    started = time.perf_counter()
    given = list(arguments)
    document = _document("run", *given, "--out", out / name)
    minutes = (time.perf_counter() - started) / 60
    print(f"\n{name} ({minutes:.1f} min): microtome run {' '.join(given)}")
    print(document.get("finding") or document["error"]["message"], flush=True)
    return document


def chosen(names: list[str], studies: Mapping[str, object]) -> list[str]:
    """The studies that were named; all of them where none was."""
    if unknown := sorted(set(names) - studies.keys()):
        sys.exit(f"no study is called {unknown[0]}; there are {', '.join(studies)}")
    return names or list(studies)
