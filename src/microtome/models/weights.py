"""What a safetensors file holds, read from its header alone; no torch here.

The header is attacker-controlled: every number in it is checked against the file's real length
before anything is allocated or mapped.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeGuard

from microtome.errors import ModelError

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000  # the same limit as the safetensors library
MAX_TENSORS = 100_000
MAX_AXES = 16
MAX_COUNT = 2**62  # Python multiplies numbers of any length, and refuses to print the longest

ITEM_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1,
    "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}  # fmt: skip
FLOATS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
"""The dtypes that weights may have, by their names in torch."""


@dataclass(frozen=True)
class StoredTensor:
    """One tensor of a file: where its bytes are, and what they mean."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: Path
    begin: int  # from the start of the file
    n_bytes: int

    @property
    def n_elements(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)


def stored_tensors(file: Path) -> tuple[StoredTensor, ...]:
    """Every tensor of a safetensors file, by name; a broken or dishonest header is refused."""
    size = file.stat().st_size
    if size < LENGTH_BYTES:
        raise _broken(file, f"has {size} bytes, too few for a safetensors header")
    with file.open("rb") as stream:
        n_header = int.from_bytes(stream.read(LENGTH_BYTES), "little")
        if n_header > MAX_HEADER_BYTES or n_header > size - LENGTH_BYTES:
            raise _broken(
                file, f"announces a header of {n_header} bytes, but the file has {size} bytes"
            )
        header = _parsed(file, stream.read(n_header))
    if len(header) > MAX_TENSORS:
        raise _broken(file, f"lists {len(header)} tensors, more than {MAX_TENSORS}")
    data = LENGTH_BYTES + n_header
    tensors = tuple(
        _entry(file, name, entry, data) for name, entry in header.items() if name != "__metadata__"
    )
    _check_layout(file, tensors, data, size)
    return tuple(sorted(tensors, key=lambda tensor: tensor.name))


def _parsed(file: Path, text: bytes) -> dict[str, object]:
    try:
        header = json.loads(text, object_pairs_hook=_without_repeats)
        json.dumps(header, ensure_ascii=False).encode()  # safetensors refuses half a character
    except (ValueError, RecursionError) as error:
        raise _broken(file, f"has a header that is not valid JSON ({_one_line(error)})") from error
    if not isinstance(header, dict):
        raise _broken(file, "has a header that is not a JSON object")
    told = header.get("__metadata__", {})
    if not isinstance(told, dict) or not all(isinstance(text, str) for text in told.values()):
        raise _broken(file, "has a __metadata__ that is not of texts")
    return header


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("the same name twice")
    return mapping


def _entry(file: Path, name: str, entry: object, data: int) -> StoredTensor:
    if not isinstance(entry, dict):
        raise _broken(file, f"describes tensor {name[:100]!r} without dtype, shape and offsets")
    dtype, shape, offsets = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
        raise _broken(
            file,
            f"keeps tensor {name[:100]!r} in the unknown dtype {str(dtype)[:40]!r}",
            f"known: {', '.join(ITEM_BYTES)}; quantised weights aren't supported",
        )
    if (
        not _are_counts(shape)
        or not _are_counts(offsets)
        or len(offsets) != 2
        or (len(shape) > MAX_AXES)
    ):
        raise _broken(file, f"gives tensor {name[:100]!r} no usable shape and offsets")
    begin, end = offsets
    n_bytes = math.prod(shape) * ITEM_BYTES[dtype]
    if end - begin != n_bytes:
        raise _broken(
            file, f"gives tensor {name[:100]!r} {end - begin} bytes, but its shape needs {n_bytes}"
        )
    return StoredTensor(name, dtype, tuple(shape), file, data + begin, n_bytes)


def _are_counts(values: object) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(n) is int and 0 <= n <= MAX_COUNT for n in values)


def _check_layout(file: Path, tensors: tuple[StoredTensor, ...], data: int, size: int) -> None:
    """The tensors must fill the data part exactly: in order, no overlap, no hole, nothing after."""
    placed = sorted(tensors, key=lambda tensor: (tensor.begin, tensor.n_bytes))
    end = placed[-1].begin + placed[-1].n_bytes if placed else data
    if end > size:
        raise _broken(file, f"is cut off: its tensors end at byte {end}, the file at byte {size}")
    if placed and placed[0].begin != data:
        raise _broken(file, f"has a hole before tensor {placed[0].name[:100]!r}")
    for before, after in pairwise(placed):
        gap = after.begin - (before.begin + before.n_bytes)
        if gap:
            what = "a hole" if gap > 0 else "an overlap"
            names = f"{before.name[:100]!r} and {after.name[:100]!r}"
            raise _broken(file, f"has {what} of {abs(gap)} bytes between tensors {names}")
    if end != size:
        raise _broken(file, f"has {size - end} bytes after its last tensor")


def _broken(file: Path, what: str, hint: str = "") -> ModelError:
    return ModelError(f"{file.name} in {file.parent} {what}", hint or "get the checkpoint again")


def _one_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
