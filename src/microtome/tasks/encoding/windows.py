"""Questions over long passages: windows of tokens that overlap, and the places of answers in them.

``stride`` is the overlap of two windows, as in transformers. A window's tokens keep their character
places in the passage, so a span of tokens is a span of the text again.
"""

from __future__ import annotations

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
from microtome.tasks.task import Answer, Row, answers_in

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

MAX_QUESTION = 64
"""Tokens of a question that are kept."""

CHUNK = 256

_DTYPES = {
    "ids": np.int32,
    "offsets": np.int64,
    "special": np.bool_,
    "of_row": np.int32,
    "char_starts": np.int32,
    "char_ends": np.int32,
    "starts": np.int32,
    "ends": np.int32,
}


@dataclass(frozen=True, eq=False)
class Windows(Encoded):
    """W windows of n questions; a question's windows follow each other.

    ``n_truncated`` counts the questions that were cut; passages never are.
    """

    n_rows: int
    of_row: NDArray[np.int32]  # (W,), the question of each window
    char_starts: NDArray[np.int32]  # (T,), place in the passage; -1 outside it
    char_ends: NDArray[np.int32]  # (T,)
    starts: NDArray[np.int32]  # (W,), the answer's first token; 0 ([CLS]) where it isn't here
    ends: NDArray[np.int32]  # (W,), its last token


def encode_windows(
    dataset: Dataset,
    tokenizer: Any,  # noqa: ANN401
    *,
    max_length: int | None = None,
    stride: int | None = None,
    segments: bool | None = None,
    cache: bool = True,
) -> Windows:
    """Questions and passages as windows of at most ``max_length`` tokens.

    Every window starts with the question; ``stride`` tokens of the passage are in both of two
    neighbouring windows. ``segments`` and ``cache`` as for ``encode``.
    """
    max_length = length_limit(dataset, tokenizer, max_length)
    max_question = min(MAX_QUESTION, max_length // 3)
    room = max_length - max_question - 4  # passage tokens that are sure to fit
    usual_stride = dataset.task.hyperparameters.stride
    stride = (
        min(128 if usual_stride is None else usual_stride, room // 2) if stride is None else stride
    )
    if not 0 <= stride < room:
        raise RequestError(
            f"expected a stride from 0 to {room - 1} for windows of {max_length}, got {stride}"
        )
    with_segments = uses_segments(tokenizer) if segments is None else segments
    plain, backend = plain_backend(tokenizer), plain_backend(tokenizer)
    key = encoding_key(dataset, plain, "windows", max_length, stride, with_segments)
    backend.enable_truncation(max_length, stride=stride, strategy="only_second")

    def write(writer: ArrayWriter) -> None:
        writer.facts |= {"n_truncated": 0, "n_rows": len(dataset)}
        writer.append("offsets", np.zeros(1))
        n_done = last = 0
        for rows in chunks(dataset.rows(), CHUNK):
            questions = _cut_questions(plain, rows, max_question, writer)
            passages = [row.pair or "" for row in rows]
            encodings = backend.encode_batch(list(zip(questions, passages, strict=True)))
            last = _write_windows(writer, rows, encodings, n_done, last, with_segments)
            n_done += len(rows)

    dtypes = _DTYPES | ({"segments": np.uint8} if with_segments else {})
    entry = stored(key, dtypes, write, keep=cache)
    arrays: dict[str, Any] = {name: entry.arrays[name] for name in _DTYPES}
    return Windows(
        **arrays,
        segments=entry.arrays.get("segments"),
        n_prompt=0,
        n_truncated=entry.facts["n_truncated"],
        n_rows=entry.facts["n_rows"],
    )


def _cut_questions(
    plain: Tokenizer, rows: tuple[Row, ...], most: int, writer: ArrayWriter
) -> list[str]:
    """The questions, cut after their ``most``-th token: the passage must keep its room."""
    questions = [row.text for row in rows]
    encodings = plain.encode_batch(questions, add_special_tokens=False)
    for index, encoding in enumerate(encodings):
        if len(encoding) > most:
            questions[index] = questions[index][: encoding.offsets[most - 1][1]]
            writer.facts["n_truncated"] += 1
    return questions


def _write_windows(
    writer: ArrayWriter,
    rows: tuple[Row, ...],
    encodings: list[Encoding],
    first_row: int,
    last: int,
    with_segments: bool,
) -> int:
    for number, (row, encoding) in enumerate(zip(rows, encodings, strict=True), start=first_row):
        answer = placed_answer(row)
        for window in (encoding, *encoding.overflowing):
            last = write_window(writer, window, last, with_segments)
            char_starts, char_ends = _passage_places(window)
            start, end = _answer_tokens(answer, char_starts, char_ends)
            writer.append("of_row", np.array([number]))
            writer.append("char_starts", char_starts)
            writer.append("char_ends", char_ends)
            writer.append("starts", np.array([start]))
            writer.append("ends", np.array([end]))
    return last


def _passage_places(window: Encoding) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    places = np.array(window.offsets, dtype=np.int32).reshape(-1, 2)
    in_passage = np.array([sequence == 1 for sequence in window.sequence_ids])
    return np.where(in_passage, places[:, 0], -1), np.where(in_passage, places[:, 1], -1)


def placed_answer(row: Row) -> Answer | None:
    """The first accepted answer where it really is in the passage; None if it isn't there."""
    answers = answers_in(row.label)
    passage = row.pair or ""
    for text, start in answers:
        if passage.startswith(text, start):
            return Answer(text, start)
    for text, start in answers:
        # The file's place is wrong: the nearest one where the text is.
        places = [at for at in range(len(passage)) if passage.startswith(text, at)]
        if places:
            return Answer(text, min(places, key=lambda at: abs(at - start)))
    return None


def _answer_tokens(
    answer: Answer | None, char_starts: NDArray[np.int32], char_ends: NDArray[np.int32]
) -> tuple[int, int]:
    """First and last token of the answer if this window holds all of it, else (0, 0)."""
    if answer is None or not answer.text:
        return 0, 0
    first, after = answer.start, answer.start + len(answer.text)
    inside = np.flatnonzero((char_starts >= 0) & (char_ends > first) & (char_starts < after))
    if not len(inside):
        return 0, 0
    start, end = int(inside[0]), int(inside[-1])
    passage = np.flatnonzero(char_starts >= 0)
    # An answer that continues beyond the window's edge isn't here.
    cut_left = char_starts[start] > first and start == passage[0]
    cut_right = char_ends[end] < after and end == passage[-1]
    return (0, 0) if cut_left or cut_right else (start, end)
