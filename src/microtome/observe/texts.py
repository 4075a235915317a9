"""Texts as the engine takes them: one flat array of token ids, cut by offsets. No padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from microtome.errors import DataError

IntArray = NDArray[np.int64]
AnyInts = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]


class Encoded(Protocol):
    """Anything that holds tokenised texts this way; other parts bring classes of their own."""

    @property
    def ids(self) -> AnyInts:
        """Token ids of all texts, one after the other (T,)."""
        ...

    @property
    def offsets(self) -> IntArray:
        """Text i is ``ids[offsets[i]:offsets[i + 1]]``; (n + 1,)."""
        ...

    @property
    def segments(self) -> AnyInts | None:
        """0 or 1 for every token (T,); None where all are 0."""
        ...

    @property
    def special(self) -> BoolArray:
        """Which tokens the tokenizer added: [CLS], [SEP]; (T,)."""
        ...


@dataclass(frozen=True)
class Texts:
    """The plain form of :class:`Encoded`; ``n_truncated`` texts didn't fit the position table."""

    ids: AnyInts
    offsets: IntArray
    segments: AnyInts | None
    special: BoolArray
    n_truncated: int = 0
    source: IntArray | None = None  # (T,) which token of the given texts each one is; None: all
    targets: AnyInts | None = None  # (T,) the token that [MASK] hides, −1 elsewhere; None: no masks
    n_prompt: int = 0  # how many tokens at each text's start are a prompt, [CLS] included

    @property
    def lengths(self) -> IntArray:
        """Tokens of each text (n,)."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def source_of(self, tokens: IntArray) -> IntArray:
        """Where these tokens stand in the texts as they were given."""
        return tokens if self.source is None else self.source[tokens]

    @classmethod
    def of(
        cls,
        ids: Sequence[Sequence[int]],
        *,
        segments: Sequence[Sequence[int]] | None = None,
        special: Sequence[Sequence[int | bool]] | None = None,
    ) -> Texts:
        """From one list of ids per text. Without ``special`` the first and last token are."""
        lengths = [len(text) for text in ids]
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
        return cls(
            _flat(ids),
            offsets,
            None if segments is None else _flat(segments),
            _ends(offsets) if special is None else _flat(special).astype(np.bool_),
        )


def fitted(texts: Encoded, n_positions: int) -> Texts:
    """``texts`` cut to the model's position table: the first tokens and the last one stay."""
    offsets = np.asarray(texts.offsets, dtype=np.int64)
    lengths = np.diff(offsets)
    if len(lengths) == 0:
        raise DataError("expected at least 1 text, got none")
    if lengths.min() < 1:
        empty = int(lengths.argmin())
        raise DataError(f"text {empty} has no tokens at all", "an empty text is [CLS] [SEP]")
    long = lengths > n_positions
    targets: AnyInts | None = getattr(texts, "targets", None)
    n_prompt: int = getattr(texts, "n_prompt", 0)
    if not long.any():
        special = np.asarray(texts.special, bool)
        return Texts(
            texts.ids, offsets, texts.segments, special, targets=targets, n_prompt=n_prompt
        )
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    length = np.repeat(lengths, lengths)
    # The last token is [SEP]: without it a cut text would look like no text the model ever saw.
    kept = (place < n_positions - 1) | (place == length - 1)
    new_offsets = np.concatenate([[0], np.cumsum(np.minimum(lengths, n_positions))])
    return Texts(
        texts.ids[kept],
        new_offsets.astype(np.int64),
        None if texts.segments is None else texts.segments[kept],
        np.asarray(texts.special, bool)[kept],
        int(long.sum()),
        np.flatnonzero(kept),
        None if targets is None else targets[kept],
        n_prompt,
    )


def first_texts(texts: Encoded, n_texts: int) -> Texts:
    """The first ``n_texts`` of some texts."""
    offsets = np.asarray(texts.offsets[: n_texts + 1], dtype=np.int64)
    rows = slice(int(offsets[-1]))
    targets: AnyInts | None = getattr(texts, "targets", None)
    return Texts(
        texts.ids[rows], offsets, None if texts.segments is None else texts.segments[rows],
        texts.special[rows], targets=None if targets is None else targets[rows],
        n_prompt=getattr(texts, "n_prompt", 0),
    )  # fmt: skip


def select_texts(texts: Texts, rows: IntArray) -> tuple[Texts, IntArray]:
    """Some of the texts, in the order of ``rows``; and which of all tokens theirs are."""
    lengths = texts.lengths[rows]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = np.arange(offsets[-1]) + np.repeat(texts.offsets[rows] - offsets[:-1], lengths)
    selected = Texts(
        ids=texts.ids[tokens],
        offsets=offsets,
        segments=None if texts.segments is None else texts.segments[tokens],
        special=texts.special[tokens],
        targets=None if texts.targets is None else texts.targets[tokens],
        n_prompt=texts.n_prompt,
    )
    return selected, tokens


def _flat(rows: Sequence[Sequence[int | bool]]) -> IntArray:
    return np.fromiter((int(value) for row in rows for value in row), dtype=np.int64)


def _ends(offsets: IntArray) -> BoolArray:
    special = np.zeros(int(offsets[-1]), dtype=np.bool_)
    filled = np.diff(offsets) > 0
    special[offsets[:-1][filled]] = True
    special[offsets[1:][filled] - 1] = True
    return special
