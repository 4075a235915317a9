"""Files that are whole or absent: temporary name, fsync, rename, fsync of the folder.

write_json(folder / "plan.json", {"steps": 100})
with storing(folder):                 # a library writes here: its disk errors in our words
    save_file(tensors, folder / "weights.safetensors")
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from microtome.errors import StorageError

TEMPORARY = ".tmp-"
_N_TOGETHER = 16
_FULL = {errno.ENOSPC, errno.EDQUOT}


def is_full_disk(error: BaseException | None) -> bool:
    """Whether this error, or one that caused it, says that there is no room left.

    Libraries in Rust or C++ (safetensors, torch) wrap the errno in their own text.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if "No space left on device" in str(error) or "os error 28" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def storage_error(error: Exception, path: Path) -> StorageError:
    """``error`` in our words."""
    if is_full_disk(error):
        return StorageError(
            f"no space left while writing {path}",
            "what is stored is intact; make room, then run the same command again to resume",
        )
    return StorageError(
        f"can't write {path}: {getattr(error, 'strerror', None) or error}",
        "what is stored is intact; when the folder can be written, run the same command again",
    )


@contextlib.contextmanager
def storing(path: Path) -> Iterator[None]:
    """Raise the disk's errors inside the block as StorageError, whichever library met them."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, path) from error
    except Exception as error:
        # safetensors and tokenizers, written in Rust, tell the errno in their text only.
        if "(os error " in str(error):
            raise storage_error(error, path) from error
        raise


def write_all(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write several files into ``folder``, each whole or absent, with one fsync of the folder.

    When one can't be written, the others stay, and StorageError is raised.
    """
    names = {name: folder / f"{TEMPORARY}{name}" for name in contents}
    failures = _written({names[name]: content for name, content in contents.items()})
    try:
        for name, temporary in names.items():
            if temporary not in failures:
                temporary.replace(folder / name)
        sync_folder(folder)
    except OSError as error:
        failures.setdefault(folder, error)
    if failures:
        for path in failures.keys() - {folder}:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        path, failure = next(iter(failures.items()))
        raise storage_error(failure, path) from failure


def _written(contents: Mapping[Path, bytes]) -> dict[Path, OSError]:
    """Write and fsync each file; the errors by path.

    Several at a time: fsyncs that wait together share one commit of the file system's journal.
    """

    def attempt(path: Path) -> tuple[Path, OSError | None]:
        try:
            _write_synced(path, contents[path])
        except OSError as error:
            return path, error
        return path, None

    if len(contents) == 1:
        results = [attempt(path) for path in contents]
    else:
        with ThreadPoolExecutor(min(_N_TOGETHER, len(contents))) as pool:
            results = list(pool.map(attempt, contents))
    return {path: error for path, error in results if error is not None}


def read_json(path: Path) -> Any:  # noqa: ANN401
    """The content of a JSON file; None where there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise StorageError(f"can't read {path}: {error}", "remove it and start again") from error


def write_bytes(path: Path, content: bytes) -> None:
    """Write one file, whole or absent."""
    write_all(path.parent, {path.name: content})


def write_text(path: Path, text: str) -> None:
    """Write one file of UTF-8 text, whole or absent."""
    write_bytes(path, text.encode())


def write_json(path: Path, content: object) -> None:
    """Write one JSON file, whole or absent."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _write_synced(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o666)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make renames inside ``folder`` last (Windows has no such call)."""
    if sys.platform != "win32":
        sync(folder)


def sync(path: Path) -> None:
    """Wait until a file or a folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def move_folder(source: Path, target: Path) -> None:
    """Put the finished folder ``source`` at ``target``, whole or absent; both on one disk.

    A folder at ``target`` is replaced: a kill may have left it there before anything named it.
    """
    with storing(target):
        for folder, _, names in os.walk(source, topdown=False):
            for name in names:
                sync(Path(folder, name))
            sync_folder(Path(folder))
        if target.exists():
            stale = target.with_name(f"{TEMPORARY}stale-{target.name}")
            target.rename(stale)
            shutil.rmtree(stale)
        source.rename(target)
        sync_folder(target.parent)


def remove(path: Path) -> None:
    """Remove a file or a folder, present or not."""
    if path.is_dir() and not path.is_symlink():
        # A worker of a killed driver may still write into it.
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
