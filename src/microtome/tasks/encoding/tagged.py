"""Words as tokens: which token stands for which word, and windows where a sentence is too long."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from microtome.errors import RequestError
from microtome.tasks.dataset import Dataset
from microtome.tasks.encoding.cache import ArrayWriter, stored
from microtome.tasks.encoding.texts import (
    Encoded,
    chunks,
    encoding_key,
    length_limit,
    plain_backend,
    uses_segments,
    write_window,
)
from microtome.tasks.task import Row

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

CHUNK = 1024
UNSEEN = -1

_DTYPES = {
    "ids": np.int32,
    "offsets": np.int64,
    "special": np.bool_,
    "of_row": np.int32,
    "word_tokens": np.int64,
}


@dataclass(frozen=True, eq=False)
class TaggedTexts(Encoded):
    """W windows of n sentences; most sentences are one window, and nothing is cut off.

    A word is read at its first piece, in the window that shows most on both sides of it.
    """

    n_rows: int
    of_row: NDArray[np.int32]  # (W,), the sentence of each window
    word_tokens: NDArray[np.int64]  # (words,), places in ids; UNSEEN: the tokenizer drops the word

    def by_token(self, by_word: NDArray[np.int64]) -> NDArray[np.int64]:
        """One number per word as one per token (T,), -1 where no word is read."""
        seen = self.word_tokens != UNSEEN
        spread = np.full(len(self.ids), -1, dtype=np.int64)
        spread[self.word_tokens[seen]] = by_word[seen]
        return spread


def encode_tagged(
    dataset: Dataset,
    tokenizer: Any,  # noqa: ANN401
    *,
    max_length: int | None = None,
    stride: int | None = None,
    segments: bool | None = None,
    cache: bool = True,
) -> TaggedTexts:
    """Sentences of words as windows of at most ``max_length`` tokens.

    ``stride`` tokens are in both of two neighbouring windows, a quarter unless named. ``segments``
    and ``cache`` as for ``encode``.
    """
    max_length = length_limit(dataset, tokenizer, max_length)
    with_segments = uses_segments(tokenizer) if segments is None else segments
    backend = plain_backend(tokenizer)
    room = max_length - backend.num_special_tokens_to_add(False)
    stride = room // 4 if stride is None else stride
    if not 0 <= stride < room:
        raise RequestError(
            f"expected a stride from 0 to {room - 1} for windows of {max_length}, got {stride}"
        )
    key = encoding_key(dataset, backend, "tagged", max_length, stride, with_segments)
    with_spaces = _needs_spaces(backend)
    backend.enable_truncation(max_length, stride=stride)

    def write(writer: ArrayWriter) -> None:
        writer.append("offsets", np.zeros(1))
        n_done = last = 0
        for rows in chunks(dataset.rows(), CHUNK):
            words = [_words(row, with_spaces) for row in rows]
            encodings = backend.encode_batch(words, is_pretokenized=True)
            for number, encoding in enumerate(encodings, start=n_done):
                windows = (encoding, *encoding.overflowing)
                n_words = len(words[number - n_done])
                writer.append("word_tokens", _word_tokens(windows, n_words, last, room - stride))
                writer.append("of_row", np.full(len(windows), number))
                for window in windows:
                    last = write_window(writer, window, last, with_segments)
            n_done += len(rows)

    dtypes = _DTYPES | ({"segments": np.uint8} if with_segments else {})
    entry = stored(key, dtypes, write, keep=cache)
    arrays: dict[str, Any] = {name: entry.arrays[name] for name in _DTYPES}
    return TaggedTexts(
        **arrays,
        segments=entry.arrays.get("segments"),
        n_prompt=0,
        n_truncated=0,
        n_rows=len(dataset),
    )


def _words(row: Row, with_spaces: bool) -> list[str]:
    first, *others = row.words or (row.text,)
    return [first, *(f" {word}" if with_spaces else word for word in others)]


def _needs_spaces(backend: Tokenizer) -> bool:
    """Whether the tokenizer knows where words begin by the space before them alone (GPT-2's)."""
    described = json.loads(backend.to_str())["pre_tokenizer"] or {}
    parts = described.get("pretokenizers", [described])
    return any(
        part.get("type") == "ByteLevel" and not part.get("add_prefix_space") for part in parts
    )


def _word_tokens(
    windows: Sequence[Encoding], n_words: int, start: int, step: int
) -> NDArray[np.int64]:
    """Where each word is read, in tokens from the first sentence on; a window begins every step."""
    found = np.full(n_words, UNSEEN, dtype=np.int64)
    context = np.full(n_words, -1)
    first_pieces: dict[int, int] = {}
    for number, window in enumerate(windows):
        pieces = [(token, word) for token, word in enumerate(window.word_ids) if word is not None]
        for order, (token, word) in enumerate(pieces):
            piece = number * step + order
            around = min(order, len(pieces) - 1 - order)
            # A window may begin with the second piece of a word.
            if first_pieces.setdefault(word, piece) == piece and around > context[word]:
                found[word], context[word] = start + token, around
        start += len(window)
    return found
