"""Rows cut from a token stream, and masking on the fly.

Everything random is drawn from (seed, step), nothing is carried from step to step: a run that
resumes after a kill sees the same rows and the same masks as an undisturbed one.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[Any]


@dataclass(frozen=True)
class Tokens:
    """Ids of the special tokens, and of what ends a sentence (None: no row is split in two)."""

    cls: int
    sep: int
    mask: int
    first_ordinary: int
    n_vocabulary: int
    full_stop: int | None


def commonest(counts: Array, tokens: Tokens) -> int:
    """The token to guess always, from how often each occurs; one that is never masked isn't."""
    maskable = counts.copy()
    maskable[[tokens.cls, tokens.sep, tokens.mask]] = 0
    return int(maskable.argmax())


@dataclass(frozen=True)
class Batch:
    """B masked rows of L tokens; in each row the same number K of positions is masked."""

    ids: Array  # (B, L)
    segments: Array  # (B, L)
    positions: Array  # (B, K), ascending
    labels: Array  # (B, K)
    starts: Array  # (B,): where in the position table each row begins

    def part(self, rows: slice) -> Batch:
        """Some of the rows."""
        return Batch(*(getattr(self, field.name)[rows] for field in fields(self)))

    @property
    def targets(self) -> Tensor:
        """The labels as the loss takes them: (B·K,)."""
        return torch.from_numpy(self.labels.ravel())


def cut(stream: Array, *, length: int, offset: int, tokens: Tokens) -> Array:
    """The whole stream as rows [CLS] … [SEP] of `length` tokens, begun at `offset`, cyclic.

    Every token of the stream is in a row; the last row is filled up from the beginning.
    """
    inner = length - 2
    n_rows = -(-len(stream) // inner)
    places = (offset + np.arange(n_rows * inner)) % len(stream)
    return wrap(stream[places].reshape(n_rows, inner), tokens)


def wrap(inner: Array, tokens: Tokens) -> Array:
    """[CLS] before and [SEP] after every row."""
    rows = np.empty((inner.shape[0], inner.shape[1] + 2), dtype=np.int64)
    rows[:, 0], rows[:, 1:-1], rows[:, -1] = tokens.cls, inner, tokens.sep
    return rows


@dataclass(frozen=True)
class RowOrder:
    """Which rows a step sees: a fresh cut and order in every epoch, known from the step alone."""

    stream: Array
    length: int
    n_rows: int  # per batch
    seed: int

    @property
    def steps_per_epoch(self) -> int:
        """Full batches in one pass over the stream."""
        return max(1, len(self.stream) // (self.length - 2) // self.n_rows)

    def rows(self, step: int, tokens: Tokens) -> Array:
        """The rows of `step`, counted from the beginning of this row length."""
        epoch, place = divmod(step, self.steps_per_epoch)
        offset, order = _epoch(len(self.stream), self.length, self.seed, epoch)
        inner = self.length - 2
        starts = (
            order[np.arange(place * self.n_rows, (place + 1) * self.n_rows) % len(order)] * inner
        )
        places = (offset + starts[:, None] + np.arange(inner)) % len(self.stream)
        return wrap(self.stream[places], tokens)


@lru_cache(maxsize=2)  # one epoch is needed thousands of times in a row
def _epoch(n_tokens: int, length: int, seed: int, epoch: int) -> tuple[int, Array]:
    random = np.random.default_rng([seed, 1, length, epoch])
    n_rows = max(1, n_tokens // (length - 2))
    return int(random.integers(n_tokens)), random.permutation(n_rows)


def make_batch(
    rows: Array,
    *,
    rate: float,
    pairs: float,
    tokens: Tokens,
    random: np.random.Generator,
    shares: tuple[float, float] = (0.8, 0.1),
    n_positions: int = 0,
) -> Batch:
    """Split the share `pairs` of the rows in two segments, then mask `rate` of the tokens.

    Of those, `shares` become [MASK] and a random token; the others stay as they are. With more
    `n_positions` than the rows are long, every second row begins anywhere in the position table:
    else short rows would leave most of it untrained.
    """
    ids, segments = split_in_two(rows, share=pairs, tokens=tokens, random=random)
    n_masked = max(1, round(rate * (rows.shape[1] - 2)))
    scores = random.random(ids.shape)
    scores[(ids == tokens.cls) | (ids == tokens.sep)] = 2.0  # special tokens are never masked
    positions = np.sort(np.argpartition(scores, n_masked, axis=1)[:, :n_masked], axis=1)
    labels = np.take_along_axis(ids, positions, axis=1)
    how = random.random(labels.shape)
    guesses = random.integers(tokens.first_ordinary, tokens.n_vocabulary, labels.shape)
    hidden, replaced = shares[0], sum(shares)
    shown = np.where(how < hidden, tokens.mask, np.where(how < replaced, guesses, labels))
    masked = ids.copy()
    np.put_along_axis(masked, positions, shown, axis=1)
    starts = random.integers(max(1, n_positions - rows.shape[1] + 1), size=len(rows))
    return Batch(masked, segments, positions, labels, np.where(np.arange(len(rows)) % 2, starts, 0))


def split_in_two(
    rows: Array, *, share: float, tokens: Tokens, random: np.random.Generator
) -> tuple[Array, Array]:
    """In `share` of the rows one full stop becomes [SEP], and what follows is segment 1."""
    ids = rows.copy()
    segments = np.zeros_like(rows)
    if tokens.full_stop is None or share <= 0:
        return ids, segments
    scores = random.random(rows.shape) * (rows == tokens.full_stop)
    scores[:, -2:] = 0.0  # something must follow
    places = scores.argmax(axis=1)
    split = (scores.max(axis=1) > 0) & (random.random(len(rows)) < share)
    lines = np.flatnonzero(split)
    ids[lines, places[lines]] = tokens.sep
    segments[lines] = np.arange(rows.shape[1]) > places[lines, None]
    return ids, segments
