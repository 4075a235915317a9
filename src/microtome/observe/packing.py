"""Exact-length packing: texts side by side in one row of tokens, so that no padding is computed.

Everything but attention works on single tokens, so a chunk is (T, D) whatever its texts' lengths.
Attention runs per group of texts of one length: a plain batch (n, H, L, Dh) without a mask.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from microtome.observe.texts import AnyInts, IntArray, Texts

TOKENS_IN_FLIGHT = 800
"""Enough for the matrix products to run at full speed, few enough for states to stay in cache."""


@dataclass(frozen=True)
class Group:
    """``n_texts`` texts of ``length`` tokens, from row ``start`` of their chunk on."""

    start: int
    n_texts: int
    length: int

    @property
    def rows(self) -> slice:
        """Its rows of the chunk."""
        return slice(self.start, self.start + self.n_texts * self.length)

    def parts(self, most_texts: int) -> Iterator[Group]:
        """The group in pieces of at most ``most_texts`` texts (at least one)."""
        step = max(1, most_texts)
        for first in range(0, self.n_texts, step):
            n_texts = min(step, self.n_texts - first)
            yield Group(self.start + first * self.length, n_texts, self.length)

    def repeated(self, times: int) -> Group:
        """The group when every text is there ``times`` times."""
        return Group(self.start * times, self.n_texts * times, self.length)


@dataclass(frozen=True)
class Chunk:
    """Texts computed together. Rows are tokens, ordered by group, then text, then position."""

    ids: Tensor  # (T,)
    positions: Tensor  # (T,) 0-based within the text
    segments: Tensor  # (T,)
    groups: tuple[Group, ...]
    texts: IntArray  # (n,) which text of the input each one is
    tokens: IntArray  # (T,) which token of the input each row is
    targets: Tensor | None = None  # (T,) the token that a row's [MASK] hides, −1 where it has none
    n_prompt: int = 0  # how many tokens at each text's start are a prompt

    @property
    def n_tokens(self) -> int:
        """T."""
        return sum(group.n_texts * group.length for group in self.groups)

    @property
    def first_rows(self) -> Tensor:
        """The row of every text's first token (n,)."""
        rows = [torch.arange(group.n_texts) * group.length + group.start for group in self.groups]
        return torch.cat(rows).to(self.ids.device)

    def texts_of(self, group: Group) -> IntArray:
        """The texts in one of its groups, or in a part of one."""
        own = next(g for g in self.groups if g.start <= group.start < g.rows.stop)
        before = sum(other.n_texts for other in self.groups if other.start < own.start)
        before += (group.start - own.start) // own.length
        return self.texts[before : before + group.n_texts]

    def chosen(self, texts: IntArray) -> tuple[Chunk, IntArray]:
        """Some of its texts by their place in it, any number of times; and which rows theirs are.

        chunk.chosen(np.array([0, 0, 2]))   # the first text twice, then the third
        """
        lengths = np.repeat(
            [group.length for group in self.groups], [group.n_texts for group in self.groups]
        )
        starts, taken = np.cumsum(lengths) - lengths, lengths[texts]
        within = np.arange(taken.sum()) - np.repeat(np.cumsum(taken) - taken, taken)
        rows = np.repeat(starts[texts], taken) + within
        on_device = torch.from_numpy(rows).to(self.ids.device)
        chosen = replace(
            self,
            ids=self.ids[on_device],
            positions=self.positions[on_device],
            segments=self.segments[on_device],
            groups=_groups(taken),
            texts=self.texts[texts],
            tokens=self.tokens[rows],
            targets=None if self.targets is None else self.targets[on_device],
        )
        return chosen, rows

    def repeated(self, times: int) -> Chunk:
        """The chunk with every group there ``times`` times: group → variant → text → position."""
        if times == 1:
            return self
        rows = torch.cat(
            [torch.arange(g.rows.start, g.rows.stop).repeat(times) for g in self.groups]
        )
        texts = [np.tile(self.texts_of(group), times) for group in self.groups]
        on_device = rows.to(self.ids.device)
        return replace(
            self,
            ids=self.ids[on_device],
            positions=self.positions[on_device],
            segments=self.segments[on_device],
            groups=tuple(group.repeated(times) for group in self.groups),
            texts=np.concatenate(texts),
            tokens=self.tokens[rows.numpy()],
            targets=None if self.targets is None else self.targets[on_device],
        )


def packed(
    texts: Texts, *, tokens_in_flight: int, device: torch.device | str = "cpu"
) -> Iterator[Chunk]:
    """All texts in chunks of about ``tokens_in_flight`` tokens: half as many again at most.

    The chunks are alike in size, but for a text that is longer than one: a few tokens left for a
    chunk of their own would read all weights once more. Longest first: the peak of memory comes at
    once, not at the end of an hour.
    """
    lengths = texts.lengths
    order = np.argsort(-lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    start = done = 0
    while start < len(order):
        left = int(ends[-1]) - done
        share = left / max(1, round(left / max(1, tokens_in_flight)))
        stop = max(start + 1, int(np.searchsorted(ends, done + share, side="right")))
        yield _chunk(texts, order[start:stop], torch.device(device))
        start, done = stop, int(ends[stop - 1])


def _chunk(texts: Texts, chosen: IntArray, device: torch.device) -> Chunk:
    lengths = texts.lengths[chosen]
    ends = np.cumsum(lengths)
    positions = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
    tokens = np.repeat(texts.offsets[chosen], lengths) + positions
    segments = np.zeros_like(tokens) if texts.segments is None else texts.segments[tokens]

    def on_device(values: AnyInts) -> Tensor:
        return torch.from_numpy(np.asarray(values, dtype=np.int64)).to(device)

    return Chunk(
        ids=on_device(texts.ids[tokens]),
        positions=on_device(positions),
        segments=on_device(segments),
        groups=_groups(lengths),
        texts=chosen,
        tokens=tokens,
        targets=None if texts.targets is None else on_device(texts.targets[tokens]),
        n_prompt=texts.n_prompt,
    )


def _groups(lengths: IntArray) -> tuple[Group, ...]:
    """Stretches of equal length in a sorted list of lengths."""
    breaks = np.flatnonzero(np.diff(lengths)) + 1
    firsts = np.concatenate([[0], breaks])
    counts = np.diff(np.concatenate([firsts, [len(lengths)]]))
    starts = (np.cumsum(lengths) - lengths)[firsts]
    return tuple(
        Group(int(start), int(n), int(lengths[first]))
        for start, n, first in zip(starts, counts, firsts, strict=True)
    )
