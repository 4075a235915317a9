"""Rows as tokens, once: flat arrays without padding, kept in the cache.

Row i is ``ids[offsets[i]:offsets[i + 1]]``. The key of an encoding covers the texts, the
tokenizer's description and the options: a changed file or vocabulary never gets an old encoding.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from microtome.errors import RequestError
from microtome.tasks.data_spec import SHORTEST
from microtome.tasks.dataset import Dataset
from microtome.tasks.encoding.cache import ArrayWriter, stored

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

VERSION = 1
"""Part of every key: raise it when the arrays change their meaning."""

CHUNK = 4096  # rows tokenised at once

EMBEDDED_KINDS = ("similarity", "retrieval")
"""Data whose texts are embedded one by one."""

Input = str | tuple[str, str]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Encoded:
    """Token arrays of n rows, T tokens in all; mapped from disk, read-only."""

    ids: NDArray[np.int32]  # (T,)
    offsets: NDArray[np.int64]  # (n + 1,)
    special: NDArray[np.bool_]  # (T,), [CLS] [SEP] and the like
    segments: NDArray[np.uint8] | None  # (T,), None where the model has none
    n_truncated: int
    n_prompt: int = field(default=0, kw_only=True)  # tokens at each text's start that are a prompt

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens per row, special ones included: what packing needs."""
        return np.diff(self.offsets)

    def row(self, index: int) -> NDArray[np.int32]:
        """The tokens of one row."""
        return self.ids[self.offsets[index] : self.offsets[index + 1]]


@dataclass(frozen=True, eq=False)
class TextPairs(Encoded):
    """The texts of n pairs, one after the other: texts 2i and 2i + 1 are row i's."""

    @property
    def of_row(self) -> NDArray[np.int64]:
        """The row of each text."""
        return np.arange(len(self)) // 2


def encode(
    dataset: Dataset,
    tokenizer: Any,  # noqa: ANN401  # transformers' tokenizers have no common type
    *,
    max_length: int | None = None,
    segments: bool | None = None,
    prompts: tuple[str, str] | None = None,
    cache: bool = True,
) -> Encoded:
    """The rows as tokens; the longer text of a pair is cut first where both are too long.

    Where texts are embedded, each is encoded by itself: both of a pair to be compared
    (``TextPairs``); queries, then documents. ``prompts`` are put before queries and documents; the
    first of them before both texts of a pair.

    ``max_length`` (tokens) is the task's unless named, ``segments`` whether the model takes token
    types (its family knows; None asks the tokenizer, and a generic one says no), ``cache`` whether
    the arrays are kept on disk for the next call.

    encode(open_data(DataSpec("micro-sentiment")), tokenizer, max_length=64).row(0)
    """
    max_length = length_limit(dataset, tokenizer, max_length)
    with_segments = uses_segments(tokenizer) if segments is None else segments
    backend = plain_backend(tokenizer)
    kind = dataset.task.kind
    options = [kind, *(prompts or ("", ""))] if kind in EMBEDDED_KINDS else ["rows"]
    key = encoding_key(dataset, backend, *options, max_length, with_segments)
    backend.enable_truncation(max_length, strategy="longest_first")

    def write(writer: ArrayWriter) -> None:
        writer.facts["n_truncated"] = 0
        writer.append("offsets", np.zeros(1))
        last = 0
        for chunk in chunks(_inputs(dataset, prompts or ("", "")), CHUNK):
            last = _write_chunk(writer, backend, chunk, last, with_segments)

    dtypes = {"ids": np.int32, "offsets": np.int64, "special": np.bool_}
    entry = stored(
        key, dtypes | ({"segments": np.uint8} if with_segments else {}), write, keep=cache
    )
    made = TextPairs if kind == "similarity" else Encoded
    return made(
        ids=entry.arrays["ids"],
        offsets=entry.arrays["offsets"],
        special=entry.arrays["special"],
        segments=entry.arrays.get("segments"),
        n_truncated=entry.facts["n_truncated"],
    )


def _inputs(dataset: Dataset, prompts: tuple[str, str]) -> Iterator[Input]:
    """What is encoded as one: a text, or the two texts that a model reads together."""
    kind = dataset.task.kind
    for index, row in enumerate(dataset.rows()):
        if kind == "similarity":
            yield prompts[0] + row.text
            yield prompts[0] + (row.pair or "")
        elif kind == "retrieval":
            yield prompts[index >= dataset.n_queries] + row.text
        else:
            yield row.text if row.pair is None else (row.text, row.pair)


def _write_chunk(
    writer: ArrayWriter,
    backend: Tokenizer,
    inputs: tuple[Input, ...],
    last: int,
    with_segments: bool,
) -> int:
    """Append the inputs' tokens; ``last`` and the result are offsets of the end."""
    encodings = backend.encode_batch_fast(list(inputs))
    offsets = last + np.cumsum([len(encoding) for encoding in encodings])
    writer.append("offsets", offsets)
    writer.append("ids", flat(encoding.ids for encoding in encodings))
    writer.append("special", flat(encoding.special_tokens_mask for encoding in encodings))
    if with_segments:
        writer.append("segments", flat(encoding.type_ids for encoding in encodings))
    writer.facts["n_truncated"] += sum(bool(encoding.overflowing) for encoding in encodings)
    return int(offsets[-1])


def write_window(writer: ArrayWriter, window: Encoding, last: int, with_segments: bool) -> int:
    """Append one window's tokens; ``last`` and the result are offsets of the end."""
    writer.append("ids", flat([window.ids]))
    writer.append("offsets", np.array([last + len(window)]))
    writer.append("special", flat([window.special_tokens_mask]))
    if with_segments:
        writer.append("segments", flat([window.type_ids]))
    return last + len(window)


def flat(lists: Iterable[Iterable[int]]) -> NDArray[np.int32]:
    """One array of many short lists."""
    return np.fromiter(chain.from_iterable(lists), dtype=np.int32)


def chunks(values: Iterator[T], size: int) -> Iterator[tuple[T, ...]]:
    """The values, ``size`` at a time."""
    while chunk := tuple(islice(values, size)):
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
