"""Which word pieces a word has, for any fast tokenizer, by the characters they share.

No assumption about the tokenizer: lower-casing, stripped accents, unknown words and leading spaces
all leave the offsets into the original text right. A piece that covers parts of two words belongs
to both; a word whose characters the tokenizer drops has no pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from microtome.errors import RequestError
from microtome.tasks.annotation.treebanks import Sentence


@dataclass(frozen=True, slots=True)
class Aligned:
    """A sentence's token ids (special ones included) and the positions of each word's pieces."""

    input_ids: tuple[int, ...]
    pieces: tuple[tuple[int, ...], ...]

    @property
    def n_lost(self) -> int:
        """Words without a piece: the tokenizer drops all of their characters."""
        return sum(not pieces for pieces in self.pieces)


def align(sentence: Sentence, tokenizer: Any) -> Aligned:  # noqa: ANN401 (transformers is untyped)
    """Tokenize the sentence's text and find every word's pieces.

    aligned = align(sentence, tokenizer)
    [aligned.input_ids[piece] for piece in aligned.pieces[2]]  # the third word's
    """
    if not getattr(tokenizer, "is_fast", False):
        raise RequestError(
            f"{type(tokenizer).__name__} gives no character offsets",
            "a fast tokenizer (with a tokenizer.json) is needed for word alignment",
        )
    encoded = tokenizer(sentence.text, return_offsets_mapping=True, truncation=False, verbose=False)
    spans = [(word.start, word.stop) for word in sentence.words]
    offsets = [(start, stop) for start, stop in encoded["offset_mapping"]]
    return Aligned(tuple(encoded["input_ids"]), pieces_of_spans(spans, offsets))


def pieces_of_spans(
    spans: Sequence[tuple[int, int]], offsets: Sequence[tuple[int, int]]
) -> tuple[tuple[int, ...], ...]:
    """For every span of characters the positions of the pieces that share one with it.

    Special tokens have empty offsets and so belong to no word.
    """
    at: dict[int, list[int]] = {}
    for position, (start, stop) in enumerate(offsets):
        for character in range(start, stop):
            at.setdefault(character, []).append(position)
    return tuple(
        tuple(sorted({position for c in range(start, stop) for position in at.get(c, ())}))
        for start, stop in spans
    )
