"""Arrays that are kept between runs: written once, checked when read, the oldest removed first.

Place: ``$MICROTOME_CACHE``, or ``~/.cache/microtome``; size: ``$MICROTOME_CACHE_LIMIT`` (``500M``,
``2G``), 2 GB by default. An entry is a folder: flat arrays, and ``entry.json`` with their hashes.
It is written under a temporary name and renamed, so an entry that exists is complete.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from microtome.errors import RequestError, StorageError

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Write: TypeAlias = Callable[["ArrayWriter"], None]

DEFAULT_LIMIT = 2 * 1024**3
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_ENTRY = "entry.json"
_TEMPORARY = ".writing-"
_STALE_SECONDS = 24 * 3600


@dataclass(frozen=True, eq=False)
class Stored:
    """What an entry holds: arrays by name (mapped from disk, read-only) and a few numbers."""

    arrays: Arrays
    facts: Mapping[str, int]


class ArrayWriter:
    """Appends to flat arrays on disk, so that what is encoded never has to fit in memory."""

    def __init__(self, folder: Path, dtypes: Mapping[str, DTypeLike]) -> None:
        self.facts: dict[str, int] = {}
        self._folder = folder
        self._dtypes = {name: np.dtype(dtype) for name, dtype in dtypes.items()}
        self._hashes = {name: blake2b(digest_size=16) for name in dtypes}
        self._lengths = dict.fromkeys(dtypes, 0)
        self._files: dict[str, IO[bytes]] = {}

    def __enter__(self) -> ArrayWriter:
        self._files = {name: (self._folder / f"{name}.bin").open("wb") for name in self._dtypes}
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def append(self, name: str, values: NDArray[Any]) -> None:
        """Add ``values`` to the end of the array ``name``."""
        flat = np.ascontiguousarray(values, dtype=self._dtypes[name])
        self._files[name].write(flat.data)
        self._hashes[name].update(flat.data)
        self._lengths[name] += flat.size

    def finish(self) -> None:
        """Put everything on disk; the description comes last."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        arrays = {
            name: [dtype.str, self._lengths[name], self._hashes[name].hexdigest()]
            for name, dtype in self._dtypes.items()
        }
        text = json.dumps({"arrays": arrays, "facts": self.facts})
        (self._folder / _ENTRY).write_text(text, encoding="utf-8")


def cache_folder() -> Path:
    """Where encodings are kept."""
    place = os.environ.get("MICROTOME_CACHE")
    root = Path(place).expanduser() if place else Path.home() / ".cache" / "microtome"
    return root / "encodings"


def cache_limit() -> int:
    """How many bytes the cache may hold."""
    text = os.environ.get("MICROTOME_CACHE_LIMIT")
    if not text:
        return DEFAULT_LIMIT
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)B?", text.strip().upper())
    if match is None:
        raise RequestError(
            f"expected a size for MICROTOME_CACHE_LIMIT, got {text!r}", "write 500M or 2G"
        )
    return int(float(match[1]) * _UNITS[match[2]])


def cache_size() -> int:
    """How many bytes the cache holds."""
    return sum(size for _, _, size in _entries(cache_folder()))


def clear_cache() -> int:
    """Remove every entry; gives the bytes that were freed."""
    folder = cache_folder()
    freed = cache_size()
    for path in _children(folder):
        shutil.rmtree(path, ignore_errors=True)
    return freed


def stored(key: str, dtypes: Mapping[str, DTypeLike], write: Write, *, keep: bool = True) -> Stored:
    """The entry ``key``, made by ``write`` where it isn't there or isn't whole."""
    if not keep:
        with tempfile.TemporaryDirectory() as temporary:
            _write(Path(temporary), dtypes, write)
            return _load(Path(temporary), mapped=False)
    entry = cache_folder() / key
    with contextlib.suppress(_NotWholeError):
        known = _load(entry)
        with contextlib.suppress(OSError):
            os.utime(entry / _ENTRY)  # used now: the last to be removed
        return known
    made = _make(entry, dtypes, write)
    # On disk only as long as it fits; what is mapped stays readable.
    _trim(cache_folder(), cache_limit())
    return made


class _NotWholeError(Exception):
    """An entry that isn't there, or isn't what was written."""


def _make(entry: Path, dtypes: Mapping[str, DTypeLike], write: Write) -> Stored:
    temporary: Path | None = None
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(entry, ignore_errors=True)
        temporary = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=entry.parent))
        _write(temporary, dtypes, write)
        # Mapped before it gets its name: no other process can remove it before.
        made = _load(temporary)
        with contextlib.suppress(FileExistsError):
            # Another process may have been faster; its entry is as good.
            _rename(temporary, entry)
        return made
    except OSError as error:
        raise StorageError(
            f"the cache {entry.parent} can't be written ({error.strerror})",
            "make room, or name another place: MICROTOME_CACHE",
        ) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _rename(temporary: Path, entry: Path) -> None:
    try:
        temporary.rename(entry)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.EACCES):
            raise FileExistsError(str(entry)) from error
        raise


def _write(folder: Path, dtypes: Mapping[str, DTypeLike], write: Write) -> None:
    with ArrayWriter(folder, dtypes) as writer:
        write(writer)
        writer.finish()


def _load(entry: Path, *, mapped: bool = True) -> Stored:
    try:
        about = json.loads((entry / _ENTRY).read_text(encoding="utf-8"))
        arrays = {
            name: _array(entry / f"{name}.bin", np.dtype(dtype), n, digest, mapped)
            for name, (dtype, n, digest) in about["arrays"].items()
        }
        return Stored(arrays, about["facts"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _NotWholeError(str(entry)) from error


def _array(path: Path, dtype: np.dtype[Any], n: int, digest: str, mapped: bool) -> NDArray[Any]:
    # Read, not mapped, for its hash: mapped pages would count as memory in use.
    with path.open("rb") as file:
        actual = file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()
    if actual != digest or path.stat().st_size != n * dtype.itemsize:
        raise ValueError(f"{path} isn't what was written")
    values: NDArray[Any]
    if n == 0:
        values = np.empty(0, dtype)
    elif mapped:
        values = np.memmap(path, dtype, mode="r")
    else:
        values = np.fromfile(path, dtype)
    return values


def _children(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _entries(folder: Path) -> Iterator[tuple[float, Path, int]]:
    """Last use, place and size of every entry."""
    for path in _children(folder):
        with contextlib.suppress(OSError):
            used = (path / _ENTRY).stat().st_mtime
            yield used, path, sum(file.stat().st_size for file in path.iterdir())


def _trim(folder: Path, limit: int) -> None:
    entries = sorted(_entries(folder))
    excess = sum(size for _, _, size in entries) - limit
    for _, path, size in entries:
        if excess <= 0:
            break
        shutil.rmtree(path, ignore_errors=True)
        excess -= size
    for path in _children(folder):
        # What a killed process left.
        with contextlib.suppress(OSError):
            old = time.time() - path.stat().st_mtime > _STALE_SECONDS
            if path.name.startswith(_TEMPORARY) and old:
                shutil.rmtree(path, ignore_errors=True)
