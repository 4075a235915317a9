"""Switch heads off, one set after another, for about a tenth of what the plain loop costs.

For a target whose lowest layer is l: the layers below l are computed once for all targets; layer
l's attention is computed once for all of its targets, because the output projection is linear
(head h changes it by ``(replacement_h − context_h) · Wo_h``); the layers above run on all variants
as one larger batch. Heads in higher layers of the same target are replaced on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from microtome.families.seam import Family
from microtome.observe import forward
from microtome.observe.packing import Chunk, packed
from microtome.observe.products import FastProducts
from microtome.observe.targets import (
    How,
    Target,
    by_first_layer,
    check_how,
    every_head_and_layer,
    target,
)
from microtome.observe.texts import Encoded, Texts, fitted

VARIANT_TOKENS_IN_FLIGHT = 1600
VARIANTS_TOGETHER = 4
FloatArray = NDArray[np.float32]


@dataclass(frozen=True)
class Sweep:
    """Every example's logits, with nothing off and with each target off."""

    targets: tuple[Target, ...]
    how: How
    baseline: FloatArray  # as ``predict`` gives it, or what ``reduce`` made of it
    logits: FloatArray  # the same for every target, (targets, …)
    n_truncated: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """What the targets are called."""
        return tuple(one.name for one in self.targets)

    def predictions(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The label of every example: with nothing off (n,), with each target off (targets, n)."""
        return self.baseline.argmax(-1), self.logits.argmax(-1)


@FastProducts()
@torch.inference_mode()
def sweep(
    model: PreTrainedModel,
    texts: Encoded,
    targets: Sequence[Target | str | Sequence[str]] | None = None,
    *,
    how: How = "uniform",
    reduce: Callable[[FloatArray, Chunk], FloatArray] | None = None,
    tokens_in_flight: int = VARIANT_TOKENS_IN_FLIGHT,
    progress: Callable[[int, int], None] | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> Sweep:
    """Logits of every text with each target switched off; without ``targets`` all heads and layers.

    ``uniform`` is the paper's disabling (1/L over the tokens a query sees), ``zero`` takes the
    head's columns of the output projection away. ``reduce`` makes (n, k) numbers of a chunk's
    logits by token: those of all tokens and targets would fill gigabytes for a whole SQuAD.
    ``progress`` is told (texts done, texts).
    """
    check_how(how)
    family = forward.bound(model, device=device, dtype=dtype)
    forward.check_head(family, texts)
    chosen = _targets(family, targets)
    own = fitted(texts, family.n_positions)
    by_token = family.by_token and reduce is None
    kept, done = _Kept(len(texts.ids) if by_token else len(own), len(chosen)), 0
    for chunk in _chunks(own, chosen, tokens_in_flight, family.model.device):
        rows = own.source_of(chunk.tokens) if by_token else chunk.texts
        for place, logits in _chunk_sweep(family, chunk, chosen, how, tokens_in_flight):
            numbers = logits.float().cpu().numpy()
            kept.put(place, rows, numbers if reduce is None else reduce(numbers, chunk))
        done += len(chunk.texts)
        if progress is not None:
            progress(done, len(own))
    return Sweep(chosen, how, kept.logits[0], kept.logits[1:], own.n_truncated)


class _Kept:
    """The growing result; row 0 is the baseline. Made when the number of labels is known."""

    def __init__(self, n_rows: int, n_targets: int) -> None:
        self.n_rows, self.n_targets = n_rows, n_targets
        self.logits: FloatArray = np.empty((0, 0, 0), dtype=np.float32)

    def put(self, place: int, rows: NDArray[np.int64], logits: FloatArray) -> None:
        if self.logits.size == 0:
            shape = (self.n_targets + 1, self.n_rows, logits.shape[-1])
            self.logits = np.full(shape, -np.inf, dtype=np.float32)
        self.logits[place + 1, rows] = logits


def _targets(
    family: Family, targets: Sequence[Target | str | Sequence[str]] | None
) -> tuple[Target, ...]:
    if targets is None:
        return every_head_and_layer(family)
    return tuple(one if isinstance(one, Target) else target(family, one) for one in targets)


def _chunks(
    texts: Texts, targets: tuple[Target, ...], tokens_in_flight: int, device: torch.device
) -> Iterator[Chunk]:
    """Base chunks so small that a few of a layer's variants together are what may be in flight.

    With all of them together the model as it is would be computed on a hundred tokens at a time,
    at half the speed.
    """
    widest = max((len(places) for places in by_first_layer(targets).values()), default=1)
    n_together = min(widest, VARIANTS_TOGETHER)
    return packed(texts, tokens_in_flight=max(1, tokens_in_flight // n_together), device=device)


def _chunk_sweep(
    family: Family, chunk: Chunk, targets: tuple[Target, ...], how: How, tokens_in_flight: int
) -> Iterator[tuple[int, Tensor]]:
    """(place of the target, logits) for all targets; place −1 is the model as it is."""
    begun = by_first_layer(targets)
    last = family.shape.n_layers - 1
    states = forward.embedded(family, chunk)
    for index in range(last + 1):
        if index == last and family.reads == "first":
            yield from _last_layer(family, states, chunk, targets, begun.get(index, []), how)
            return
        split = _SplitLayer.of(family, index, states, chunk, how)
        for batch in _batches(begun.get(index, []), chunk.n_tokens, tokens_in_flight):
            logits = _variants(split, [targets[place] for place in batch])
            yield from zip(batch, logits, strict=True)
        states = split.unchanged()
    yield -1, forward.read(family, states, chunk)


def _batches(places: list[int], n_tokens: int, tokens_in_flight: int) -> Iterator[list[int]]:
    """Variants of a chunk that are computed together: batches alike in size, as chunks are."""
    n_batches = max(1, min(len(places), round(len(places) * n_tokens / tokens_in_flight)))
    for batch in np.array_split(places, n_batches):
        if len(batch):
            yield batch.tolist()


@dataclass(frozen=True)
class _SplitLayer:
    """A layer, stopped before its output projection."""

    family: Family
    index: int
    chunk: Chunk
    how: How
    states: Tensor  # (T, D) the layer's input
    context: Tensor  # (T, H, Dh)
    value: Tensor  # (T, H, Dh)
    projected: Tensor  # (T, D) the context after the output projection

    @classmethod
    def of(cls, family: Family, index: int, states: Tensor, chunk: Chunk, how: How) -> _SplitLayer:
        query, key, value = family.project(index, states, chunk.positions)
        context = forward.attend(family, index, (query, key, value), chunk.groups)
        projected = family.project_output(index, context.flatten(-2))
        return cls(family, index, chunk, how, states, context, value, projected)

    def unchanged(self) -> Tensor:
        """The layer's output with nothing off (T, D)."""
        attended = self.family.attention_residual(self.index, self.states, self.projected)
        return self.family.feed_forward(self.index, attended)

    def changed(self, targets: Sequence[Target]) -> Tensor:
        """The output of the attention half for every target (V, T, D)."""
        off = _off(targets, self.index, self.family, self.projected)
        replaced = _replacement(self.family, self.index, self.value, self.chunk, self.how)
        projected = _projected(
            self.family, self.index, self.projected, replaced - self.context, off
        )
        return self.family.attention_residual(
            self.index, self.states.expand_as(projected), projected
        )


def _variants(split: _SplitLayer, targets: Sequence[Target]) -> list[Tensor]:
    """The logits of all targets that begin in this layer, the layers above as one batch."""
    family, n_variants = split.family, len(targets)
    chunk = split.chunk.repeated(n_variants)
    changed = split.changed(targets)  # (V, T, D)
    rows = [changed[:, group.rows].flatten(0, 1) for group in split.chunk.groups]
    states = family.feed_forward(split.index, rows[0] if len(rows) == 1 else torch.cat(rows))
    higher = max(one.heads[-1].layer for one in targets)
    start = split.index + 1
    for index in range(start, higher + 1):
        states = _layer_with_heads_off(family, index, states, chunk, targets, split)
    logits = forward.finished(family, states, chunk, start=max(start, higher + 1))
    return _by_variant(logits, split.chunk, n_variants, by_token=family.by_token)


def _layer_with_heads_off(
    family: Family,
    index: int,
    states: Tensor,
    chunk: Chunk,
    targets: Sequence[Target],
    split: _SplitLayer,
) -> Tensor:
    """One layer of all variants, with the heads that each target has here replaced."""
    query, key, value = family.project(index, states, chunk.positions)
    context = forward.attend(family, index, (query, key, value), chunk.groups)
    off = _off(targets, index, family, states).bool()  # (V, H)
    rows = [off.repeat_interleave(g.n_texts * g.length, 0) for g in split.chunk.groups]
    replaced = _replacement(family, index, value, chunk, split.how)
    context = torch.where(torch.cat(rows)[..., None], replaced, context)
    attended = family.attention_output(index, states, context.flatten(-2))
    return family.feed_forward(index, attended)


def _last_layer(
    family: Family,
    states: Tensor,
    chunk: Chunk,
    targets: tuple[Target, ...],
    places: list[int],
    how: How,
) -> Iterator[tuple[int, Tensor]]:
    """A classifier's last layer: first tokens only, the model as it is among the variants."""
    index = family.shape.n_layers - 1
    first = forward.first_tokens(family, index, states, chunk)
    replaced = first.mean_value() if how == "uniform" else torch.zeros_like(first.context)
    whole = family.project_output(index, first.context.flatten(-2))  # (n, D)
    off = _off([targets[place] for place in places], index, family, whole)
    projected = _projected(family, index, whole, replaced - first.context, off)
    projected = torch.cat([whole[None], projected])
    attended = family.attention_residual(index, first.states.expand_as(projected), projected)
    final = family.final_norm(family.feed_forward(index, attended))  # (1 + V, n, D)
    logits = family.answer_first(final.flatten(0, 1)).view(*final.shape[:2], -1)
    yield from zip([-1, *places], logits, strict=True)


def _projected(
    family: Family, index: int, whole: Tensor, difference: Tensor, off: Tensor
) -> Tensor:
    """The output projection of every variant (V, T, D), from one product per head."""
    n_heads = family.shape.n_heads
    weight = family.part("attention_output").weight(family.layers[index])  # (D, H·Dh)
    by_head = weight.view(len(weight), n_heads, -1).permute(1, 2, 0)  # (H, Dh, D)
    deltas = torch.bmm(difference.transpose(0, 1), by_head)  # (H, T, D)
    # One-hot rows pick a head's delta, rows of ones add up a whole layer's.
    return torch.addmm(whole.flatten(), off, deltas.flatten(1)).view(-1, *whole.shape)


def _replacement(family: Family, index: int, value: Tensor, chunk: Chunk, how: How) -> Tensor:
    """What a switched-off head hands on, for every token and head (T, H, Dh)."""
    if how == "zero":
        return torch.zeros_like(value)
    return forward.uniform_values(family, index, value, chunk)


def _off(targets: Sequence[Target], index: int, family: Family, like: Tensor) -> Tensor:
    """1 where a target switches a head of this layer off: (V, H)."""
    off = torch.zeros(len(targets), family.shape.n_heads, dtype=like.dtype)
    for row, one in enumerate(targets):
        off[row, list(one.heads_of(index))] = 1
    return off.to(like.device)


def _by_variant(logits: Tensor, chunk: Chunk, n_variants: int, *, by_token: bool) -> list[Tensor]:
    """Rows ordered group → variant → text (→ token) apart again: one tensor per variant."""
    sizes = [group.n_texts * (group.length if by_token else 1) for group in chunk.groups]
    parts = torch.split(logits, [size * n_variants for size in sizes])
    pieces = [part.view(n_variants, -1, part.shape[-1]) for part in parts]
    return list(torch.cat(pieces, 1))
