"""Pairs as tokens: what can be patched has as many tokens, position by position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding

from microtome.experiments.field.patching.pair_file import Input, TextPair
from microtome.observe.texts import IntArray, Texts
from microtome.tasks.encoding.texts import plain_backend

NONE = -1
MASK = "[MASK]"  # in a file, whatever the model's own mask token is called
SAME, OTHER_LENGTH = "no token differs", "another number of tokens"
TOO_LONG, NO_MASK = "longer than the model reads", "no mask at the same token of both texts"
NOT_ONE_PIECE = "a word that isn't one token"
SHOWN_LINES = 5


@dataclass(frozen=True, eq=False)
class Pair:
    """A clean and a corrupted text of as many tokens; ``row`` is that of pairs that go together.

    Of a masked LM, ``masked`` is the position of the mask, ``answer`` and ``other`` the tokens that
    are compared there; −1 where the model's own guesses are.
    """

    texts: TextPair
    clean: Encoding
    corrupted: Encoding
    masked: int = NONE
    answer: int = NONE
    other: int = NONE

    @property
    def changed(self) -> IntArray:
        """The positions where the tokens differ."""
        return np.flatnonzero(tokens_of(self.clean) != tokens_of(self.corrupted))


class Encoder:
    """A tokenizer as the model takes its texts: cut to ``max_length``, with or without segments."""

    def __init__(self, tokenizer: Any, *, max_length: int, segments: bool) -> None:  # noqa: ANN401
        self.backend = plain_backend(tokenizer)
        self.backend.enable_truncation(max_length, strategy="longest_first")
        self.mask_token: str = tokenizer.mask_token or MASK
        self.mask_id: int | None = tokenizer.mask_token_id
        self.with_segments = segments

    def encode(self, given: Input) -> Encoding:
        """The tokens of a text, or of two."""
        return self.backend.encode(*((given,) if isinstance(given, str) else given))

    def texts(self, encodings: Sequence[Encoding]) -> Texts:
        """Many of them as the engine takes them."""
        return Texts.of(
            [encoding.ids for encoding in encodings],
            segments=[e.type_ids for e in encodings] if self.with_segments else None,
            special=[e.special_tokens_mask for e in encodings],
        )

    def mask_of(self, encoding: Encoding) -> int:
        """The position of the only mask; −1 where there is none, or several."""
        places = [place for place, token in enumerate(encoding.ids) if token == self.mask_id]
        return places[0] if len(places) == 1 else NONE


def encoded_pairs(
    pairs: Iterable[TextPair], encoder: Encoder, *, masked: bool
) -> tuple[list[Pair], Counter[str]]:
    """The pairs that can be patched, and why how many others can't.

    ``masked``: they are for a masked LM, and have a mask at the same token of both texts.
    """
    found: list[Pair] = []
    lines: dict[str, list[int]] = {}
    for texts in pairs:
        pair = _encoded(texts, encoder, masked=masked)
        if isinstance(pair, str):
            lines.setdefault(pair, []).append(texts.line)
        else:
            found.append(pair)
    return found, Counter({_at(why, where): len(where) for why, where in lines.items()})


def _at(why: str, lines: list[int]) -> str:
    """A reason, and the first lines of the file that it is about."""
    if not any(lines):
        return why
    more = ", …" if len(lines) > SHOWN_LINES else ""
    return f"{why}, line {', '.join(map(str, lines[:SHOWN_LINES]))}{more}"


def _encoded(texts: TextPair, encoder: Encoder, *, masked: bool) -> Pair | str:
    """One pair, or why it can't be patched."""
    inputs = [
        replaced(given, MASK, encoder.mask_token) if masked else given
        for given in (texts.clean, texts.corrupted)
    ]
    clean, corrupted = map(encoder.encode, inputs)
    if clean.overflowing or corrupted.overflowing:
        return TOO_LONG
    if len(clean) != len(corrupted):
        return OTHER_LENGTH
    if clean.ids == corrupted.ids:
        return SAME
    if not masked:
        return Pair(texts, clean, corrupted)
    place = encoder.mask_of(clean)
    if place == NONE or place != encoder.mask_of(corrupted):
        return NO_MASK
    answer, other = (
        _token_at(word, inputs[0], clean, encoder) for word in (texts.answer, texts.other)
    )
    if answer is None or other is None:
        return NOT_ONE_PIECE
    return Pair(texts, clean, corrupted, place, answer, other)


def _token_at(word: str | None, given: Input, clean: Encoding, encoder: Encoder) -> int | None:
    """The token that ``word`` is in the place of the mask; −1 for no word, None for several."""
    if word is None:
        return NONE
    filled = encoder.encode(replaced(given, encoder.mask_token, word))
    place = encoder.mask_of(clean)
    if len(filled) != len(clean):
        return None
    changed = np.flatnonzero(tokens_of(filled) != tokens_of(clean))
    return int(filled.ids[place]) if changed.tolist() == [place] else None


def replaced(given: Input, old: str, new: str) -> Input:
    """A text, or both of two, with a stretch replaced."""
    if isinstance(given, str):
        return given.replace(old, new)
    return given[0].replace(old, new), given[1].replace(old, new)


def tokens_of(encoding: Encoding) -> NDArray[np.int64]:
    """The ids of a text (L,)."""
    return np.array(encoding.ids, dtype=np.int64)
