"""One driver per run folder. The kernel drops the lock when its holder dies, however it dies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from microtome.errors import StorageError


class FolderLock:
    """An exclusive lock on ``folder/.lock``, held until ``release``."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / ".lock"
        # Not inheritable (Python's default): a worker never keeps the lock of a dead driver.
        self._descriptor = os.open(self.path, os.O_CREAT | os.O_RDWR, 0o666)
        try:
            _take(self._descriptor)
        except OSError as error:
            holder = os.read(self._descriptor, 20).decode(errors="replace").strip() or "unknown"
            os.close(self._descriptor)
            raise StorageError(
                f"{folder} is in use by another process (pid {holder})",
                "wait for it, or stop it, or choose another folder",
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let the next driver in. The file stays: removing it would race with the next holder."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> None:
        # Far past the text, so that whoever is refused can still read the pid.
        os.lseek(descriptor, 1024, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
