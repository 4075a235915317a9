"""What a tokenizer's tokens are: special, punctuation, the start of a word or its continuation."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.observe.texts import BoolArray, Texts

TOKEN_CLASSES = ("special", "first", "inner", "punctuation", "continuation")
"""Every token is in one: special (and [UNK]); the first one after [CLS]; then by what it is."""

SPECIAL, FIRST, INNER, PUNCTUATION, CONTINUATION = range(len(TOKEN_CLASSES))

_CONTINUES = "##"  # WordPiece marks the pieces that continue a word
_STARTS = ("▁", "Ġ")  # SentencePiece and byte-level BPE mark the pieces that start one
_ASCII_SYMBOLS = frozenset("$+<=>^`|~")  # punctuation to BERT, symbols to Unicode


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Tokens by id, and three marks of each."""

    tokens: tuple[str, ...]
    special: BoolArray  # (V,) [UNK] too
    punctuation: BoolArray  # (V,)
    continuation: BoolArray  # (V,)

    def __len__(self) -> int:
        return len(self.tokens)

    def token(self, index: int) -> str:
        """A token by its id; a model may have more rows than its tokenizer has tokens."""
        return self.tokens[index] if index < len(self.tokens) else f"[{index}]"

    @classmethod
    def of(cls, tokens: Sequence[str], special_ids: Sequence[int]) -> Vocabulary:
        """From the tokens in the order of their ids, and which of them are special."""
        special = np.zeros(len(tokens), dtype=np.bool_)
        special[list(special_ids)] = True
        return cls(
            tuple(tokens),
            special,
            np.array([_is_punctuation(_bare(token)) for token in tokens], dtype=np.bool_),
            _continuations(tokens),
        )


def vocabulary_of(tokenizer: Any) -> Vocabulary:  # noqa: ANN401  # no common type in transformers
    """The vocabulary of a Hugging Face tokenizer."""
    tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    special_ids = [index for index in tokenizer.all_special_ids if index < len(tokens)]
    return Vocabulary.of([token or "" for token in tokens], special_ids)


def token_classes(texts: Texts, vocabulary: Vocabulary) -> NDArray[np.uint8]:
    """The class of every token (T,), as a place in :data:`TOKEN_CLASSES`."""
    ids = texts.ids
    classes = np.full(len(ids), INNER, dtype=np.uint8)
    classes[vocabulary.continuation[ids]] = CONTINUATION
    classes[vocabulary.punctuation[ids]] = PUNCTUATION
    starts = texts.offsets[:-1]
    after = np.minimum(starts + texts.special[starts], texts.offsets[1:] - 1)
    classes[after] = FIRST
    classes[texts.special | vocabulary.special[ids]] = SPECIAL
    return classes


def joined(tokens: Sequence[str]) -> str:
    """Tokens as one readable line: pieces of a word together."""
    words: list[str] = []
    for token in tokens:
        if token.startswith(_CONTINUES) and words:
            words[-1] += token[len(_CONTINUES) :]
        else:
            words.append(token)
    line = " ".join(words)
    for mark in _STARTS:
        if mark in line:
            line = "".join(words).replace(mark, " ")
    return line.strip()


def _continuations(tokens: Sequence[str]) -> BoolArray:
    if any(token.startswith(_CONTINUES) for token in tokens):
        return np.array([token.startswith(_CONTINUES) for token in tokens], dtype=np.bool_)
    mark = next((m for m in _STARTS if sum(t.startswith(m) for t in tokens) > 1), None)
    if mark is None:
        return np.zeros(len(tokens), dtype=np.bool_)
    return np.array([not token.startswith(mark) for token in tokens], dtype=np.bool_)


def _bare(token: str) -> str:
    token = token.removeprefix(_CONTINUES)
    for mark in _STARTS:
        token = token.removeprefix(mark)
    return token


def _is_punctuation(text: str) -> bool:
    return bool(text) and all(
        unicodedata.category(c).startswith("P") or c in _ASCII_SYMBOLS for c in text
    )
