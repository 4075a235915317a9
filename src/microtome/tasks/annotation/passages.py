"""Annotated text as a model reads it: from a treebank, the embedded annotation, or a tagger.

A :class:`Passage` is one input (a text, perhaps with a second one) and its annotated sentences;
:func:`encode_passages` turns passages into token arrays and finds every word's pieces in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.errors import DataError
from microtome.tasks.annotation.alignment import pieces_of_spans
from microtome.tasks.annotation.treebanks import Sentence, Word, read_conllu
from microtome.tasks.dataset import Dataset
from microtome.tasks.encoding.texts import flat, plain_backend
from microtome.tasks.reading.embedded import gold_rows
from microtome.tasks.sampling import limited


@dataclass(frozen=True)
class Placed:
    """A sentence of a passage: on which side (0 text, 1 pair), and from which character on."""

    sentence: Sentence
    side: int = 0
    start: int = 0


@dataclass(frozen=True)
class Passage:
    """One input with its annotation; passages of one ``cluster`` aren't independent."""

    text: str
    pair: str | None
    sentences: tuple[Placed, ...]
    cluster: str = ""


@dataclass(frozen=True)
class FoundWord:
    """A word of an input: where its sentence stands, and the places of its pieces."""

    word: Word
    sentence: int
    index: int  # within its sentence, from 0
    side: int
    pieces: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class AnnotatedTexts:
    """Token arrays of n inputs, as ``observe`` takes them, with the words of each."""

    ids: NDArray[np.int64]  # (T,)
    offsets: NDArray[np.int64]  # (n + 1,)
    segments: NDArray[np.int64] | None
    special: NDArray[np.bool_]  # (T,)
    sides: NDArray[np.int64]  # (T,), 0 text, 1 pair, −1 special
    words: tuple[tuple[FoundWord, ...], ...]
    passages: tuple[Passage, ...]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each input."""
        return np.diff(self.offsets)

    def sides_of(self, text: int) -> NDArray[np.int64]:
        """The sides of one input's tokens: 0 text, 1 pair, −1 special."""
        return self.sides[self.offsets[text] : self.offsets[text + 1]]

    @property
    def clusters(self) -> NDArray[np.int64] | None:
        """Which inputs belong together; None where each stands alone."""
        names = [passage.cluster for passage in self.passages]
        if not all(names):
            return None
        return np.unique(names, return_inverse=True)[1].astype(np.int64)


def treebank_passages(path: Path, *, limit: int | None = None, seed: int = 0) -> list[Passage]:
    """A passage per sentence of a CoNLL-U file."""
    sentences = read_conllu(path)
    if not sentences:
        raise DataError(f"{path} has no sentences")
    if limit is not None and limit < len(sentences):
        sentences = [sentences[i] for i in limited(len(sentences), limit, seed).tolist()]
    return [Passage(sentence.text, None, (Placed(sentence),)) for sentence in sentences]


def gold_passages(dataset: Dataset) -> Iterator[Passage]:
    """The rows of an embedded task with the annotation that they were made with."""
    made = {row.id: row for row in gold_rows(dataset.task.name, dataset.split)}
    for row in dataset.rows():
        own = made[row.id or ""]
        sides = (own.first, own.second)
        placed = [
            one
            for side, parts in enumerate(sides)
            for one in _in_a_row([part.sentence for part in parts], side)
        ]
        yield Passage(row.text, row.pair, tuple(placed), own.cluster)


def _in_a_row(sentences: Iterable[Sentence], side: int) -> Iterator[Placed]:
    """Sentences that are joined by single spaces."""
    start = 0
    for sentence in sentences:
        yield Placed(sentence, side, start)
        start += len(sentence.text) + 1


def tagged_passages(dataset: Dataset, tagger: Any) -> Iterator[Passage]:  # noqa: ANN401  # a Tagger
    """The rows of any task, annotated by a tagger."""
    clusters = dataset.clusters
    for number, row in enumerate(dataset.rows()):
        texts = [row.text] if row.pair is None else [row.text, row.pair]
        placed = tuple(Placed(tagger(text), side) for side, text in enumerate(texts) if text)
        cluster = "" if clusters is None else str(clusters[number])
        yield Passage(row.text, row.pair, placed, cluster)


def cut_into_words(text: str) -> Sentence:
    """Runs of letters and digits are words, other marks punctuation; no annotation beyond that."""
    found = re.finditer(r"\w+|[^\w\s]", text)
    words = [
        Word(m[0], upos="_" if m[0][0].isalnum() else "PUNCT", start=m.start(), stop=m.end())
        for m in found
    ]
    return Sentence(text, tuple(words))


def encode_passages(
    passages: Sequence[Passage],
    tokenizer: Any,  # noqa: ANN401  # transformers' tokenizers have no common type
    *,
    max_length: int,
    segments: bool,
) -> AnnotatedTexts:
    """Passages as tokens; words that were cut off, or have no piece, are left out."""
    backend = plain_backend(tokenizer)
    backend.enable_truncation(max_length, strategy="longest_first")
    inputs = [one.text if one.pair is None else (one.text, one.pair) for one in passages]
    encodings = backend.encode_batch(inputs)
    lengths = [len(encoding) for encoding in encodings]
    sides = [[-1 if s is None else s for s in encoding.sequence_ids] for encoding in encodings]
    return AnnotatedTexts(
        ids=flat(encoding.ids for encoding in encodings).astype(np.int64),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        segments=(
            flat(encoding.type_ids for encoding in encodings).astype(np.int64) if segments else None
        ),
        special=flat(one.special_tokens_mask for one in encodings).astype(np.bool_),
        sides=flat(sides).astype(np.int64),
        words=tuple(
            tuple(_found(passage, encoding.offsets, own))
            for passage, encoding, own in zip(passages, encodings, sides, strict=True)
        ),
        passages=tuple(passages),
    )


def _found(
    passage: Passage, offsets: Sequence[tuple[int, int]], sides: Sequence[int]
) -> Iterator[FoundWord]:
    for number, placed in enumerate(passage.sentences):
        own = [
            span if side == placed.side else (0, 0)
            for span, side in zip(offsets, sides, strict=True)
        ]
        words = placed.sentence.words
        spans = [(placed.start + word.start, placed.start + word.stop) for word in words]
        for index, (word, pieces) in enumerate(
            zip(words, pieces_of_spans(spans, own), strict=True)
        ):
            if pieces:
                yield FoundWord(word, number, index, placed.side, pieces)
