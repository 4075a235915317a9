"""Where output may go; no torch here, so that a wrong place is refused at once."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from microtome.errors import RequestError


def check_empty(out: str | PathLike[str]) -> None:
    """Refuse a place for output that already has something in it."""
    target = Path(out).expanduser()
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise RequestError(f"{target} is not a folder, expected a new or empty one")
    if target.is_dir() and any(target.iterdir()):
        raise RequestError(
            f"the folder {target} is not empty, and nothing is overwritten",
            "give a new folder, or remove this one first",
        )
