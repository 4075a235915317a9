"""Text files as numbered lines. Only LF and CR LF end a line.

``str.splitlines`` and text mode also cut at U+2028, form feeds and lone carriage returns, which
occur inside sentences: rows would be torn silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from microtome.errors import DataError

_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf": "7z",
}
_COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zip", ".zst", ".7z", ".lzma", ".tgz")


class Line(NamedTuple):
    """A line without its end; ``number`` counts from 1, ``end`` is how the file ended it."""

    number: int
    text: str
    end: str


def at_line(path: Path, number: int, problem: str, hint: str = "") -> DataError:
    """The error of one line of a file."""
    return DataError(f"{path.name}, line {number}: {problem}", hint)


def check_readable(path: Path) -> None:
    """Refuse what is missing, empty, a folder, or compressed, before anything is read."""
    if not path.exists():
        raise DataError(f"no file {path}")
    if path.is_dir():
        raise DataError(f"expected a file, got the folder {path}")
    with path.open("rb") as file:
        start = file.read(8)
    if not start:
        raise DataError(f"{path.name} is empty")
    kind = next((name for magic, name in _COMPRESSED.items() if start.startswith(magic)), None)
    if kind or path.suffix.lower() in _COMPRESSED_SUFFIXES:
        raise DataError(f"{path.name} is compressed ({kind or path.suffix})", "unpack it first")


def read_lines(path: Path) -> Iterator[Line]:
    """The lines of a UTF-8 file, one at a time; a byte order mark at the start is dropped."""
    check_readable(path)
    with path.open("rb") as file:
        # A binary file cuts at b"\n" alone.
        for number, raw in enumerate(file, start=1):
            yield _decode(path, number, raw)


def _decode(path: Path, number: int, raw: bytes) -> Line:
    if number == 1:
        if raw.startswith(_UTF16):
            raise at_line(path, 1, "expected UTF-8, got UTF-16", "save it as UTF-8")
        raw = raw.removeprefix(_BOM)
    if b"\0" in raw:
        raise at_line(path, number, "a NUL byte; this isn't UTF-8 text")
    end = "\r\n" if raw.endswith(b"\r\n") else "\n" if raw.endswith(b"\n") else ""
    try:
        return Line(number, raw[: len(raw) - len(end)].decode("utf-8"), end)
    except UnicodeDecodeError as error:
        byte = raw[error.start]
        raise at_line(
            path,
            number,
            f"byte 0x{byte:02x} at {error.start + 1} isn't UTF-8",
            "convert the file to UTF-8",
        ) from error


def without_blank_end(path: Path, lines: Iterator[Line]) -> Iterator[Line]:
    """Drop empty lines at the end of a file; one before the end is an error."""
    blank: Line | None = None
    for line in lines:
        if not line.text:
            blank = blank or line
            continue
        if blank:
            raise at_line(path, blank.number, "an empty line between rows", "remove it")
        yield line
