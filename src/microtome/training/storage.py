"""Files that are whole or absent, and a disk's errors in our words."""

from __future__ import annotations

import json
import os
from pathlib import Path

from microtome.errors import StorageError

TEMPORARY = ".tmp-"


def write_json(file: Path, content: object) -> None:
    """A file that is whole or absent."""
    write_text(file, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def write_text(file: Path, text: str) -> None:
    """A file that is whole or absent: temporary name, flush to disk, rename."""
    temporary = file.with_name(f"{TEMPORARY}{file.name}")
    temporary.write_text(text, encoding="utf-8")
    sync(temporary)
    temporary.replace(file)


class storing:  # noqa: N801  # reads as a statement: with storing(folder, kept="…")
    """Errors of the disk in our words; ``kept`` says what isn't lost."""

    def __init__(self, folder: Path, *, kept: str) -> None:
        self.folder, self.kept = folder, kept

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        from safetensors import SafetensorError

        if isinstance(error, OSError | SafetensorError):
            reason = getattr(error, "strerror", None) or str(error)
            raise StorageError(
                f"can't write to {self.folder}: {reason}",
                f"{self.kept}; make room and run the same command again",
            ) from error


def sync(path: Path) -> None:
    """Wait until a file or a folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
