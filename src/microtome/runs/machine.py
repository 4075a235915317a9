"""Where a run was made: versions, commit, machine. Looked up without importing anything heavy."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

_PACKAGES = ("microtome", "torch", "transformers", "tokenizers", "numpy", "scipy", "scikit-learn")


@functools.cache
def versions() -> dict[str, str]:
    """Python and the packages that decide numbers, as installed here."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


@functools.cache
def commit() -> str | None:
    """The commit of Microtome's own source tree; None when it is installed from a wheel."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists() or not (root / "src" / "microtome").exists():
        return None
    asked = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40"]
    asked += ["--exclude=*"]  # tags out: a hash is the same in every clone
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


def n_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine() -> dict[str, str | int]:
    """The machine in few words; no host name."""
    return {"cpus": n_cores(), "platform": platform.platform(), "machine": platform.machine()}
