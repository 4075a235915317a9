"""The forward pass in training: packed rows through the family's pieces, autograd and dropout on.

The same pieces as in ``observe``; what differs is written for the way back: tensors are cut by
``split`` and joined by ``cat``, whose gradients are one copy instead of one per group.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from microtome.families.seam import Family
from microtome.observe.forward import added_scores, read
from microtome.observe.packing import Chunk, Group


def logits_of(family: Family, chunk: Chunk, *, dropped: frozenset[int] = frozenset()) -> Tensor:
    """What the head gives, as ``observe.predict`` has it; the layers in ``dropped`` are left out.

    Logits (n, labels), by token (T, labels) or (T, 2), or an embedder's embeddings (n, D').
    """
    states = family.embed(chunk.ids, chunk.positions, chunk.segments)  # (T, D)
    last = family.shape.n_layers - 1
    for index in range(last):
        if index not in dropped:
            states = layer(family, index, states, chunk)
    if last in dropped:
        return read(family, states, chunk)
    if family.reads == "first":
        return family.answer_first(family.final_norm(first_tokens(family, last, states, chunk)))
    return read(family, layer(family, last, states, chunk), chunk)


def layer(family: Family, index: int, states: Tensor, chunk: Chunk) -> Tensor:
    """One layer: (T, D) → (T, D)."""
    query, key, value = family.project(index, states, chunk.positions)
    context = attend(family, index, query, key, value, chunk.groups)
    return family.feed_forward(index, family.attention_output(index, states, context))


def first_tokens(family: Family, index: int, states: Tensor, chunk: Chunk) -> Tensor:
    """One layer for the first token of every text alone, all that a classifier reads: (n, D)."""
    rows = chunk.first_rows
    query, key, value = family.project(index, states, chunk.positions)
    context = attend(family, index, query[rows], key, value, chunk.groups, first_only=True)
    return family.feed_forward(index, family.attention_output(index, states[rows], context))


def attend(
    family: Family,
    index: int,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    groups: Sequence[Group],
    *,
    first_only: bool = False,
) -> Tensor:
    """Attention within every text, with dropout in training: → context (Q, H·Dh).

    ``query`` holds all tokens (T, H, Dh), or with ``first_only`` one per text.
    """
    rate = family.attention_dropout if family.model.training else 0.0
    queried = [group.n_texts * (1 if first_only else group.length) for group in groups]
    tokens = [group.n_texts * group.length for group in groups]
    queries, keys, values = (
        torch.split(part, sizes)
        for part, sizes in ((query, queried), (key, tokens), (value, tokens))
    )
    contexts = []
    for group, group_queries, group_keys, group_values in zip(
        groups, queries, keys, values, strict=True
    ):
        by_text = _by_text(group_queries, group), _by_text(group_keys, group)
        mixed = functional.scaled_dot_product_attention(
            *by_text,
            _by_text(group_values, group),
            attn_mask=added_scores(family, index, *by_text),
            dropout_p=rate,
            scale=family.scaling,
        )
        contexts.append(mixed.transpose(1, 2).flatten(0, 1))
    return torch.cat(contexts).flatten(-2)


def _by_text(values: Tensor, group: Group) -> Tensor:
    """(n·L, H, Dh) → (n, H, L, Dh)."""
    return values.reshape(group.n_texts, -1, *values.shape[1:]).transpose(1, 2)
