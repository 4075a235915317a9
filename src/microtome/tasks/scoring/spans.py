"""From start and end logits of windows to answers: n-best over all windows of a question."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from microtome.errors import RequestError
from microtome.tasks.encoding.windows import Windows

MAX_ANSWER = 30
"""Tokens of the longest answer that is considered."""

N_BEST = 20


class Span(NamedTuple):
    """A candidate answer: its characters in the passage and the sum of its two logits."""

    start: int
    end: int
    score: float


class SpanChoice(NamedTuple):
    """A question's candidates, best first, and the score of "no answer"."""

    row: int
    spans: tuple[Span, ...]
    no_answer: float

    @property
    def margin(self) -> float:
        """By how much "no answer" beats the best span."""
        return self.no_answer - (self.spans[0].score if self.spans else -np.inf)


def best_spans(
    windows: Windows,
    start_logits: NDArray[np.floating],
    end_logits: NDArray[np.floating],
    *,
    n_best: int = N_BEST,
    max_answer: int = MAX_ANSWER,
) -> Iterator[SpanChoice]:
    """The choices of every question, in order. Logits are flat, (T,), as the windows' tokens.

    Every span of at most ``max_answer`` tokens is considered. "No answer" is the window where
    [CLS] scores least: another window without the answer says nothing against it.
    """
    n_tokens = len(windows.ids)
    if start_logits.shape != (n_tokens,) or end_logits.shape != (n_tokens,):
        raise RequestError(
            f"expected one logit for each of {n_tokens} tokens,"
            f" got shapes {start_logits.shape} and {end_logits.shape}"
        )
    borders = np.searchsorted(windows.of_row, np.arange(windows.n_rows + 1))
    for row in range(windows.n_rows):
        spans: list[Span] = []
        no_answer = np.inf
        for window in range(borders[row], borders[row + 1]):
            part = slice(windows.offsets[window], windows.offsets[window + 1])
            start, end = start_logits[part], end_logits[part]
            no_answer = min(no_answer, float(start[0]) + float(end[0]))
            places = windows.char_starts[part], windows.char_ends[part]
            spans += _window_spans(start, end, *places, n_best, max_answer)
        yield SpanChoice(row, _distinct(spans, n_best), no_answer)


def _window_spans(
    start: NDArray[np.floating],
    end: NDArray[np.floating],
    char_starts: NDArray[np.int32],
    char_ends: NDArray[np.int32],
    n_best: int,
    max_answer: int,
) -> list[Span]:
    passage = np.flatnonzero(char_starts >= 0)
    if not len(passage):
        return []
    first = passage[0]
    n = len(passage)  # the passage is one stretch of the window
    padded = np.full(n + max_answer - 1, -np.inf)
    padded[:n] = end[first : first + n]
    scores = start[first : first + n, None] + sliding_window_view(padded, max_answer)  # (n, answer)
    flat = scores.ravel()
    best = np.argpartition(flat, -n_best)[-n_best:] if flat.size > n_best else np.arange(flat.size)
    spans = []
    for place in best[np.isfinite(flat[best])]:
        begin, length = divmod(int(place), max_answer)
        begin += int(first)
        span = Span(int(char_starts[begin]), int(char_ends[begin + length]), float(flat[place]))
        if span.end > span.start:
            spans.append(span)
    return spans


def _distinct(spans: list[Span], n_best: int) -> tuple[Span, ...]:
    """Best first; a place that two windows share counts once."""
    seen: dict[tuple[int, int], Span] = {}
    # Ties go to the earlier, shorter span, so that the answer doesn't depend on the sort.
    for span in sorted(spans, key=lambda span: (-span.score, span.start, span.end)):
        seen.setdefault((span.start, span.end), span)
    return tuple(seen.values())[:n_best]
