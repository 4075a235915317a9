"""Where a run was made: versions, commit, machine. Looked up without importing anything heavy."""

from __future__ import annotations

import contextlib
import functools
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from microtome.errors import DISTRIBUTION
from microtome.threads import n_cores

# The name in records, and the distribution that has the version.
_PACKAGES = {"microtome": DISTRIBUTION} | {
    name: name for name in ("torch", "transformers", "tokenizers", "numpy", "scipy")
}


@functools.cache
def versions() -> dict[str, str]:
    """Python and the packages that decide numbers, as installed here."""
    installed = {"python": platform.python_version()}
    for name, distribution in _PACKAGES.items():
        with contextlib.suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(distribution)
    return installed


@functools.cache
def commit() -> str | None:
    """The commit of Microtome's source tree; None when it is installed from a wheel."""
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


def machine() -> dict[str, str | int]:
    """The machine in few words; no host name."""
    return {"cpus": n_cores(), "platform": platform.platform(), "machine": platform.machine()}
