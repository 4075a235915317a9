"""The masked-LM forward pass for training, over the families' pieces.

Only what is asked for is computed: the last layer's queries and feed-forward at masked positions.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from microtome.families.seam import Family
from microtome.training.pretraining.loss import Candidates, vocabulary_loss
from microtome.training.pretraining.rows import Batch


def masked_loss(family: Family, batch: Batch, candidates: Candidates | None = None) -> Tensor:
    """Mean cross-entropy at the positions that the batch asks for."""
    decoder = family.mlm_decoder()
    labels = torch.from_numpy(batch.labels).reshape(-1)
    features = masked_features(family, batch).reshape(len(labels), -1)
    return vocabulary_loss(features, decoder.weight, decoder.bias, labels, candidates)


def masked_features(family: Family, batch: Batch) -> Tensor:
    """What the decoder reads at the positions asked for: (B, K, E)."""
    return family.mlm_features(asked_states(family, batch))


def asked_states(family: Family, batch: Batch) -> Tensor:
    """The final states at the positions asked for: (B, K, D)."""
    states = embedded(family, batch)
    last = family.shape.n_layers - 1
    for index in range(last):
        states = layer(family, index, states, states)
    asked = torch.from_numpy(batch.positions)[..., None].expand(-1, -1, states.shape[-1])
    states = layer(family, last, states, states.gather(1, asked), torch.from_numpy(batch.positions))
    return family.final_norm(states)


def every_depth(family: Family, batch: Batch) -> Iterator[Tensor]:
    """The states at depth 0, 1, …, N: (B, L, D) each."""
    states = embedded(family, batch)
    yield states
    for index in range(family.shape.n_layers):
        states = layer(family, index, states, states)
        yield states


def embedded(family: Family, batch: Batch) -> Tensor:
    """The states at depth 0: (B, L, D)."""
    ids = torch.from_numpy(batch.ids)
    positions = torch.arange(ids.shape[1]).expand_as(ids)
    if batch.starts is not None:
        positions = positions + torch.from_numpy(batch.starts)[:, None]
    return family.embed(ids, positions, torch.from_numpy(batch.segments))


def layer(
    family: Family, index: int, states: Tensor, asking: Tensor, positions: Tensor | None = None
) -> Tensor:
    """One layer: `asking` (B, K, D) attends to `states` (B, L, D), no padding."""
    everywhere = torch.arange(states.shape[1]).expand(states.shape[:2])
    query, key, value = family.project(index, states, everywhere)
    if positions is not None:
        query, _, _ = family.project(index, asking, positions)
    query, key, value = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
    context = functional.scaled_dot_product_attention(query, key, value, scale=family.scaling)
    joined = context.transpose(1, 2).reshape(*asking.shape[:2], -1)
    return family.feed_forward(index, family.attention_output(index, asking, joined))
