"""The forward pass over packed chunks: any layer from any depth, and the heads at the end."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

from microtome.errors import RequestError
from microtome.families import adapt
from microtome.families.embedder import Embedder
from microtome.families.seam import Family
from microtome.observe.packing import Chunk, Group
from microtome.observe.texts import Encoded

HALVES = (torch.float16, torch.bfloat16)


def bound(
    model: PreTrainedModel,
    *,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> Family:
    """The family of ``model`` in eval mode, on ``device`` in ``dtype``; the model isn't touched.

    A copy is made only where the model differs from what is asked. Half precision on a CPU is
    computed in float32 unless it is asked for by name.
    """
    wanted_device = torch.device(device or model.device)
    wanted = dtype or model.dtype
    if dtype is None and wanted_device.type == "cpu" and wanted in HALVES:
        wanted = torch.float32
    if model.training or not _same(model.device, wanted_device) or model.dtype != wanted:
        model = copy.deepcopy(model).eval().to(device=wanted_device, dtype=wanted)
    return adapt(model)


def _same(one: torch.device, wanted: torch.device) -> bool:
    """Whether a device is the wanted one; "cuda" alone means any of them."""
    return one.type == wanted.type and wanted.index in (None, one.index)


def attend(
    family: Family, index: int, projected: Sequence[Tensor], groups: Sequence[Group]
) -> Tensor:
    """Softmax attention within every text: q, k, v (T, H, Dh) → context (T, H, Dh)."""
    context = torch.empty_like(projected[2])
    for group in groups:
        query, key, value = (by_text(part, group) for part in projected)
        mixed = functional.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=added_scores(family, index, query, key),
            scale=family.scaling,
        )
        by_text(context, group).copy_(mixed)
    return context


def by_text(values: Tensor, group: Group) -> Tensor:
    """A group's rows of (T, H, Dh) as a batch (n, H, L, Dh); a view."""
    rows = values[group.rows]
    return rows.view(group.n_texts, group.length, *rows.shape[1:]).transpose(1, 2)


def added_scores(family: Family, index: int, query: Tensor, key: Tensor) -> Tensor | None:
    """What attention adds to q·k, as torch's kernel takes it: a window, position terms, or None.

    ``query`` (n, H, Q, Dh) has the first Q of the L tokens whose ``key`` is (n, H, L, Dh).
    """
    n_queries, length = query.shape[-2], key.shape[-2]
    mask = window_mask(family, index, length, query.device)
    terms = family.position_scores(index, length, query, key)
    if mask is not None and n_queries < length:
        mask = mask[:n_queries]
    if terms is None or mask is None:
        return mask if terms is None else terms
    return terms.masked_fill(~mask, -torch.inf)


def window_mask(
    family: Family, index: int, length: int, device: torch.device | None = None
) -> Tensor | None:
    """Which keys each query sees (L, L), in a sliding layer that is narrower than the text."""
    window = family.window(index)
    if window is None or length <= window + 1:
        return None
    place = torch.arange(length, device=device)
    return (place[:, None] - place[None, :]).abs() <= window


def layer_forward(family: Family, index: int, states: Tensor, chunk: Chunk) -> Tensor:
    """One layer: (T, D) → (T, D)."""
    projected = family.project(index, states, chunk.positions)
    context = attend(family, index, projected, chunk.groups)
    attended = family.attention_output(index, states, context.flatten(-2))
    return family.feed_forward(index, attended)


def embedded(family: Family, chunk: Chunk) -> Tensor:
    """The states at depth 0 (T, D)."""
    return family.embed(chunk.ids, chunk.positions, chunk.segments)


def depths(family: Family, chunk: Chunk) -> Iterator[Tensor]:
    """The states (T, D) at depth 0, 1, …, N, one at a time. ``final_norm`` is not applied."""
    states = embedded(family, chunk)
    yield states
    for index in range(family.shape.n_layers):
        states = layer_forward(family, index, states, chunk)
        yield states


def finished(family: Family, states: Tensor, chunk: Chunk, *, start: int) -> Tensor:
    """From the states at depth ``start`` to the head's logits, with the shortest way at the end.

    Classification (n, labels); an embedder (n, D'); token classification (T, labels); question
    answering (T, 2); a masked LM (n, 5).
    """
    last = family.shape.n_layers - 1
    for index in range(start, last):
        states = layer_forward(family, index, states, chunk)
    if start <= last and family.reads == "first":
        rows = first_tokens_forward(family, last, states, chunk)
        return family.answer_first(family.final_norm(rows))
    if start <= last:
        states = layer_forward(family, last, states, chunk)
    return read(family, states, chunk)


def read(family: Family, states: Tensor, chunk: Chunk) -> Tensor:
    """The head's logits from the states at depth N."""
    if family.reads == "first":
        return family.answer_first(family.final_norm(states[chunk.first_rows]))
    states = family.final_norm(states)
    if family.embedder is not None:
        return family.embedder.project(text_embeddings(family.embedder, states, chunk))
    if family.reads in ("mean", "late"):
        return family.classify(text_means(family.before_mean(states), chunk))
    if family.head == "question-answering":
        return family.answer(states)
    if family.head == "token-classification":
        return family.tag(states)
    return masked_answers(family, states, chunk)


def check_head(family: Family, texts: Encoded) -> None:
    """Refuse a model that has no answer to texts: without a head, or without masks for an MLM's."""
    if family.by_token or family.head == "classification" or family.embedder is not None:
        return
    if family.head != "mlm" or getattr(texts, "targets", None) is None:
        kind = type(family.model).__name__ if family.head == "other" else family.head
        raise RequestError(
            f"predictions asked for, but the model has {kind or 'no'} head",
            "give a model with a classification, token-classification or question-answering head, "
            "or a sentence embedder (an encoder with --pooling cls or mean is one); a masked LM "
            "answers texts with masks",
        )


def masked_answers(family: Family, states: Tensor, chunk: Chunk) -> Tensor:
    """A masked LM's answers, by text (n, 5): see ``tasks.scoring.masked_tokens.COLUMNS``.

    ``states`` are normed. Only masked tokens go through the head: the vocabulary is wide.
    """
    assert chunk.targets is not None  # see check_head
    rows = torch.nonzero(chunk.targets >= 0).squeeze(1)
    targets = chunk.targets[rows]
    logits = family.mlm_decoder()(family.mlm_features(states[rows])).float()
    guessed = logits.argmax(1)
    loss = functional.cross_entropy(logits, targets, reduction="none")
    counted = torch.stack([torch.ones_like(loss), (guessed == targets).float(), loss], 1)
    texts = text_of_rows(chunk)[rows]
    sums = counted.new_zeros(len(chunk.texts), 3).index_add_(0, texts, counted)
    ends = [
        counted.new_zeros(len(chunk.texts)).scatter_reduce_(
            0, texts, guessed.float(), how, include_self=False
        )
        for how in ("amin", "amax")
    ]
    return torch.cat([sums, torch.stack(ends, 1)], 1)


def text_of_rows(chunk: Chunk) -> Tensor:
    """Which of the chunk's texts each row belongs to (T,)."""
    lengths = [group.length for group in chunk.groups for _ in range(group.n_texts)]
    repeats = torch.tensor(lengths, device=chunk.ids.device)
    return torch.repeat_interleave(repeats)


def text_means(values: Tensor, chunk: Chunk) -> Tensor:
    """The mean over each text's tokens: (T, …) → (n, …)."""
    means = [
        values[group.rows].view(group.n_texts, group.length, *values.shape[1:]).mean(1)
        for group in chunk.groups
    ]
    return torch.cat(means)


def text_embeddings(embedder: Embedder, states: Tensor, chunk: Chunk) -> Tensor:
    """The states of each text pooled: (T, D) → (n, k·D)."""
    pooled = [
        embedder.pool(states[group.rows].view(group.n_texts, group.length, -1), chunk.n_prompt)
        for group in chunk.groups
    ]
    return torch.cat(pooled)


@dataclass(frozen=True)
class FirstTokens:
    """A layer's first tokens of every text: all that a classifier's last layer needs."""

    states: Tensor  # (n, D) the layer's input
    context: Tensor  # (n, H, Dh)
    mean_value: Callable[[], Tensor]  # (n, H, Dh) what uniform attention would give


def first_tokens(family: Family, index: int, states: Tensor, chunk: Chunk) -> FirstTokens:
    """Attention of every text's first token, without projecting the other tokens.

    A query of one token meets keys that are linear in the states, so the key matrix goes to the
    query's side, and the value matrix after the weighted mean: (H·D) products per token each
    instead of (D·D). Keys that positions change or read, and sliding windows, take the plain way.
    """
    rows = chunk.first_rows
    first = states[rows]
    if not family.keys_are_linear or family.window(index) is not None:
        projected = family.project(index, states, chunk.positions)
        context = attend(family, index, projected, chunk.groups)[rows]
        return FirstTokens(
            first, context, lambda: uniform_values(family, index, projected[2], chunk)[rows]
        )
    key, _ = _head_weights(family, index, "key")  # (H, Dh, D)
    value, value_bias = _head_weights(family, index, "value")
    inputs = family.attention_input(index, states)
    query = family.project(index, first, chunk.positions[rows])[0]  # (n, H, Dh)
    # The key's bias adds the same to all scores of a query: softmax doesn't see it.
    probes = torch.bmm(query.transpose(0, 1) * family.scaling, key).transpose(0, 1)  # (n, H, D)
    mixed = _weighted_means(family, index, inputs, query, probes, chunk)  # (n, H, D)

    def projected_value(means: Tensor) -> Tensor:  # (n, H, D) → (n, H, Dh)
        return torch.bmm(means.transpose(0, 1), value.mT).transpose(0, 1) + value_bias

    n_heads = query.shape[1]
    return FirstTokens(
        first,
        projected_value(mixed),
        lambda: projected_value(text_means(inputs, chunk)[:, None].expand(-1, n_heads, -1)),
    )


def first_tokens_forward(family: Family, index: int, states: Tensor, chunk: Chunk) -> Tensor:
    """A layer's output for the first token of every text only: (T, D) → (n, D)."""
    first = first_tokens(family, index, states, chunk)
    attended = family.attention_output(index, first.states, first.context.flatten(-2))
    return family.feed_forward(index, attended)


def uniform_values(family: Family, index: int, value: Tensor, chunk: Chunk) -> Tensor:
    """What uniform attention gives each token: the mean value of the keys it sees (T, H, Dh)."""
    means = torch.empty_like(value)
    for group in chunk.groups:
        own = by_text(value, group)  # (n, H, L, Dh)
        mask = window_mask(family, index, group.length, value.device)
        if mask is None:
            by_text(means, group).copy_(own.mean(2, keepdim=True))
        else:
            weights = mask.to(value.dtype)
            by_text(means, group).copy_((weights / weights.sum(1, keepdim=True)) @ own)
    return means


def _weighted_means(
    family: Family, index: int, inputs: Tensor, query: Tensor, probes: Tensor, chunk: Chunk
) -> Tensor:
    """Per text and head, the inputs' mean under softmax(probe · input): (n, H, D)."""
    means, before = [], 0
    for group in chunk.groups:
        own = inputs[group.rows].view(group.n_texts, group.length, -1)  # (n, L, D)
        texts = slice(before, before + group.n_texts)
        scores = probes[texts] @ own.mT  # (n, H, L)
        terms = family.position_scores(index, group.length, query[texts, :, None], None)
        if terms is not None:
            scores += terms[..., 0, :]
        means.append(scores.softmax(-1) @ own)
        before += group.n_texts
    return torch.cat(means)


def _head_weights(family: Family, index: int, part: str) -> tuple[Tensor, Tensor | float]:
    """A projection by head: weight (H, Dh, D), bias (H, Dh) or 0."""
    n_heads, layer = family.shape.n_heads, family.layers[index]
    weight = family.part(part).weight(layer)
    bias = family.part(part).bias(layer)
    by_head = weight.view(n_heads, -1, weight.shape[1])
    return by_head, 0.0 if bias is None else bias.view(n_heads, -1)
