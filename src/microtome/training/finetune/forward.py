"""The forward pass in training: packed rows through the family's pieces, autograd and dropout on.

The same pieces as in ``observe``; what differs is written for the way back: tensors are cut by
``split`` and joined by ``cat``, whose gradients are one copy instead of one per group. A
loss is summed over rows: the caller divides by the effective batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from microtome.families.seam import Family
from microtome.observe.forward import added_scores, read
from microtome.observe.packing import Chunk, Group
from microtome.tasks.task import Kind


def logits_of(family: Family, chunk: Chunk, *, dropped: frozenset[int] = frozenset()) -> Tensor:
    """The head's logits, (n, labels) or (T, 2); the layers in ``dropped`` are left out."""
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


def summed_loss(kind: Kind, logits: Tensor, targets: Tensor, chunk: Chunk) -> Tensor:
    """Cross-entropy, squared error, or the mean of the start's and the end's cross-entropy."""
    logits = logits.float()  # half-precision losses lose what small gradients need
    if kind == "regression":
        return functional.mse_loss(logits[:, 0], targets.float(), reduction="sum")
    if kind == "spans":
        return _span_loss(logits, targets, chunk)
    return functional.cross_entropy(logits, targets, reduction="sum")


def _span_loss(logits: Tensor, targets: Tensor, chunk: Chunk) -> Tensor:
    """Over the tokens of each window; transformers lets the softmax run over padding, too."""
    losses, before = [], 0
    parts = torch.split(logits, [group.n_texts * group.length for group in chunk.groups])
    for group, part in zip(chunk.groups, parts, strict=True):
        by_text = part.view(group.n_texts, group.length, 2).transpose(1, 2)  # (n, 2, L)
        places = targets[before : before + group.n_texts]  # (n, 2)
        losses.append(
            functional.cross_entropy(by_text.flatten(0, 1), places.flatten(), reduction="sum") / 2
        )
        before += group.n_texts
    return torch.stack(losses).sum()
