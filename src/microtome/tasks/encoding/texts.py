"""Rows as tokens, once: flat arrays without padding, kept in the cache.

Row i is ``ids[offsets[i]:offsets[i + 1]]``. The key of an encoding covers the texts, the
tokenizer's description and the options: a changed file or vocabulary never gets an old encoding.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from microtome.errors import RequestError
from microtome.tasks.data_spec import SHORTEST
from microtome.tasks.dataset import Dataset
from microtome.tasks.encoding.cache import ArrayWriter, stored
from microtome.tasks.task import Row

if TYPE_CHECKING:
    from tokenizers import Tokenizer

VERSION = 1
"""Part of every key: raise it when the arrays change their meaning."""

CHUNK = 4096  # rows tokenised at once


@dataclass(frozen=True, eq=False)
class Encoded:
    """Token arrays of n rows, T tokens in all; mapped from disk, read-only."""

    ids: NDArray[np.int32]  # (T,)
    offsets: NDArray[np.int64]  # (n + 1,)
    special: NDArray[np.bool_]  # (T,), [CLS] [SEP] and the like
    segments: NDArray[np.uint8] | None  # (T,), None where the model has none
    n_truncated: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens per row, special ones included: what packing needs."""
        return np.diff(self.offsets)

    def row(self, index: int) -> NDArray[np.int32]:
        """The tokens of one row."""
        return self.ids[self.offsets[index] : self.offsets[index + 1]]


def encode(
    dataset: Dataset,
    tokenizer: Any,  # noqa: ANN401  # transformers' tokenizers have no common type
    *,
    max_length: int | None = None,
    segments: bool | None = None,
    cache: bool = True,
) -> Encoded:
    """The rows as tokens; the longer text of a pair is cut first where both are too long.

    ``max_length`` (tokens) is the task's unless named, ``segments`` whether the model takes token
    types (its family knows; None asks the tokenizer, and a generic one says no), ``cache`` whether
    the arrays are kept on disk for the next call.

    encode(open_data(DataSpec("micro-sentiment")), tokenizer, max_length=64).row(0)
    """
    max_length = length_limit(dataset, tokenizer, max_length)
    with_segments = uses_segments(tokenizer) if segments is None else segments
    backend = plain_backend(tokenizer)
    key = encoding_key(dataset, backend, "rows", max_length, with_segments)
    backend.enable_truncation(max_length, strategy="longest_first")

    def write(writer: ArrayWriter) -> None:
        writer.facts["n_truncated"] = 0
        writer.append("offsets", np.zeros(1))
        last = 0
        for chunk in chunks(dataset.rows(), CHUNK):
            last = _write_chunk(writer, backend, chunk, last, with_segments)

    dtypes = {"ids": np.int32, "offsets": np.int64, "special": np.bool_}
    entry = stored(
        key, dtypes | ({"segments": np.uint8} if with_segments else {}), write, keep=cache
    )
    return Encoded(
        ids=entry.arrays["ids"],
        offsets=entry.arrays["offsets"],
        special=entry.arrays["special"],
        segments=entry.arrays.get("segments"),
        n_truncated=entry.facts["n_truncated"],
    )


def _write_chunk(
    writer: ArrayWriter, backend: Tokenizer, rows: tuple[Row, ...], last: int, with_segments: bool
) -> int:
    """Append the rows' tokens; ``last`` and the result are offsets of the end."""
    inputs = [row.text if row.pair is None else (row.text, row.pair) for row in rows]
    encodings = backend.encode_batch_fast(inputs)
    offsets = last + np.cumsum([len(encoding) for encoding in encodings])
    writer.append("offsets", offsets)
    writer.append("ids", flat(encoding.ids for encoding in encodings))
    writer.append("special", flat(encoding.special_tokens_mask for encoding in encodings))
    if with_segments:
        writer.append("segments", flat(encoding.type_ids for encoding in encodings))
    writer.facts["n_truncated"] += sum(bool(encoding.overflowing) for encoding in encodings)
    return int(offsets[-1])


def flat(lists: Iterable[Iterable[int]]) -> NDArray[np.int32]:
    """One array of many short lists."""
    return np.fromiter(chain.from_iterable(lists), dtype=np.int32)


def chunks(rows: Iterator[Row], size: int) -> Iterator[tuple[Row, ...]]:
    """The rows, ``size`` at a time."""
    while chunk := tuple(islice(rows, size)):
        yield chunk


def plain_backend(tokenizer: Any) -> Tokenizer:  # noqa: ANN401
    """A copy of the tokenizer's engine without truncation and padding."""
    from tokenizers import Tokenizer

    backend = getattr(tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        name = type(tokenizer).__name__
        raise RequestError(f"{name} has no fast tokenizer", "Microtome needs a tokenizer.json")
    copy = Tokenizer.from_str(backend.to_str())
    copy.no_truncation()
    copy.no_padding()
    return copy


def uses_segments(tokenizer: Any) -> bool:  # noqa: ANN401
    """Whether the tokenizer says that its model takes segments; a generic one doesn't know."""
    return "token_type_ids" in getattr(tokenizer, "model_input_names", ())


def length_limit(dataset: Dataset, tokenizer: Any, asked: int | None) -> int:  # noqa: ANN401
    """The asked length, or the task's; never more than the model takes."""
    most = int(min(getattr(tokenizer, "model_max_length", 10**9), 10**9))
    if asked is not None and not SHORTEST <= asked <= most:
        raise RequestError(f"expected a max length of {SHORTEST} to {most} tokens, got {asked}")
    return asked or min(dataset.task.hyperparameters.max_length, most)


def encoding_key(dataset: Dataset, backend: Tokenizer, *options: object) -> str:
    """What the cache calls an encoding."""
    vocabulary = hashlib.sha256(backend.to_str().encode()).hexdigest()
    parts = json.dumps([VERSION, dataset.text_hash, vocabulary, *options])
    return hashlib.sha256(parts.encode()).hexdigest()[:40]
