"""Attention maps as a stream: each is made, handed to the reductions, and gone.

A :class:`Reduction` sees every map once, as blocks (n, H, L, L) of texts of one length, layer by
layer. Keeping the maps of one SST-2 dev set would take 19 GB; a stream takes what one chunk takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from microtome.errors import RequestError
from microtome.families.seam import Family
from microtome.observe import forward
from microtome.observe.packing import TOKENS_IN_FLIGHT, Chunk, Group, packed
from microtome.observe.products import FastProducts
from microtome.observe.texts import Encoded, IntArray, Texts, fitted

WEIGHTS_AT_ONCE = 2**21  # 8 MB of attention weights


@dataclass(frozen=True, eq=False)
class MapBlock:
    """The attention maps of one layer for texts of one length; real tokens only."""

    layer: int
    texts: IntArray  # (n,) which texts of the input
    tokens: IntArray  # (n, L) which tokens of the input, counted over all texts
    maps: Tensor  # (n, H, L, L): query, key
    other: Tensor | None = None  # the second model's, where there is one

    @property
    def length(self) -> int:
        """L."""
        return int(self.maps.shape[-1])

    @cached_property
    def received(self) -> Tensor:
        """What each token receives from all tokens, divided by L: (n, H, L)."""
        return self.maps.mean(-2)

    def marked(self, marks: np.ndarray) -> Tensor:
        """Marks of the input's tokens (T,), as (n, L)."""
        return torch.from_numpy(np.asarray(marks)[self.tokens]).to(self.maps.device)


class Reduction(Protocol):
    """Anything that takes maps in and keeps little."""

    def open(self, n_layers: int, n_heads: int, n_texts: int) -> None:
        """Called once, before the first block."""
        ...

    def add(self, block: MapBlock) -> None:
        """Called for every block. ``block.maps`` may not be kept nor changed."""
        ...


@FastProducts()
@torch.inference_mode()
def stream(
    model: PreTrainedModel,
    texts: Encoded,
    reductions: Sequence[Reduction],
    *,
    other: PreTrainedModel | None = None,
    tokens_in_flight: int = TOKENS_IN_FLIGHT,
    progress: Callable[[int, int], None] | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> int:
    """Run ``model`` (and ``other`` with it) and hand every map to all ``reductions``.

    Gives the number of texts that were cut to fit the position table.
    """
    families = [forward.bound(model, device=device, dtype=dtype)]
    if other is not None:
        families.append(forward.bound(other, device=device, dtype=dtype))
        check_alike(*families)
    own = fitted(texts, min(family.n_positions for family in families))
    shape = families[0].shape
    for reduction in reductions:
        reduction.open(shape.n_layers, shape.n_heads, len(own))
    done = 0
    for chunk in packed(own, tokens_in_flight=tokens_in_flight, device=families[0].model.device):
        for block in _blocks(families, chunk, own):
            for reduction in reductions:
                reduction.add(block)
        done += len(chunk.texts)
        if progress is not None:
            progress(done, len(own))
    return own.n_truncated


def _blocks(families: Sequence[Family], chunk: Chunk, texts: Texts) -> Iterator[MapBlock]:
    """All layers' blocks of one chunk. Nothing after the last layer's maps is computed."""
    runs = [_MapRun(family, chunk) for family in families]
    for index in range(families[0].shape.n_layers):
        for run in runs:
            run.enter(index)
        for group in _parts(chunk, families[0].shape.n_heads):
            maps = [run.maps_of(group) for run in runs]
            tokens = chunk.tokens[group.rows].reshape(group.n_texts, group.length)
            yield MapBlock(
                index,
                chunk.texts_of(group),
                texts.source_of(tokens),
                maps[0],
                maps[1] if len(maps) > 1 else None,
            )


def _parts(chunk: Chunk, n_heads: int) -> Iterator[Group]:
    """Groups so small that their maps stay in cache: 384 tokens give one text at a time."""
    for group in chunk.groups:
        yield from group.parts(WEIGHTS_AT_ONCE // (n_heads * group.length**2))


class _MapRun:
    """One model on its way through a chunk: layer by layer, group by group.

    All maps lie in one buffer, one after the other: fresh memory for each would cost more than the
    softmax.
    """

    def __init__(self, family: Family, chunk: Chunk) -> None:
        self.family, self.chunk = family, chunk
        self.buffer = torch.empty(0)
        self.states = self.context = forward.embedded(family, chunk)
        self.index = -1

    def enter(self, index: int) -> None:
        """Close the layer before, and project the states for this one; nothing follows the last."""
        if self.index >= 0:
            attended = self.family.attention_output(
                self.index, self.states, self.context.flatten(-2)
            )
            self.states = self.family.feed_forward(self.index, attended)
        self.index = index
        positions = self.chunk.positions
        if self.is_last:
            self.query, self.key = self.family.project_for_maps(index, self.states, positions)
        else:
            self.query, self.key, self.value = self.family.project(index, self.states, positions)
            self.context = torch.empty_like(self.value)

    @property
    def is_last(self) -> bool:
        """Whether the run is in the last layer, after whose maps nothing is computed."""
        return self.index == self.family.shape.n_layers - 1

    def maps_of(self, group: Group) -> Tensor:
        """The group's maps, until the next ones; its part of the context is filled in as well."""
        query, key = (forward.by_text(part, group) for part in (self.query, self.key))
        maps = self._room(group)
        scores = maps.flatten(0, 1)
        # What matmul does, and the scaling with it.
        torch.baddbmm(
            scores, query.flatten(0, 1), key.flatten(0, 1).mT,
            beta=0, alpha=self.family.scaling, out=scores,
        )  # fmt: skip
        terms = self.family.position_scores(self.index, group.length, query, key)
        if terms is not None:
            maps += terms
        mask = forward.window_mask(self.family, self.index, group.length, query.device)
        if mask is not None:
            maps.masked_fill_(~mask, -torch.inf)
        torch.softmax(maps, -1, out=maps)  # in place: a weight is read before it is written
        if not self.is_last:
            forward.by_text(self.context, group).copy_(maps @ forward.by_text(self.value, group))
        return maps

    def _room(self, group: Group) -> Tensor:
        """(n, H, L, L) of the buffer, which grows to the largest group."""
        shape = group.n_texts, self.query.shape[-2], group.length, group.length
        size = math.prod(shape)
        if len(self.buffer) < size:
            self.buffer = self.query.new_empty(size)
        return self.buffer[:size].view(shape)


def check_alike(one: Family, two: Family) -> None:
    """Refuse two models whose heads can't be compared one by one."""
    for what in ("n_layers", "n_heads", "vocabulary"):
        ours, theirs = getattr(one.shape, what), getattr(two.shape, what)
        if ours != theirs:
            raise RequestError(
                f"two models to compare: one has {what} {ours}, the other {theirs}",
                "heads can be compared one by one only where the models have the same shape",
            )
