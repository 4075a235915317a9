"""The masked-LM forward pass for training, over the families' pieces."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from microtome.families.seam import Family
from microtome.observe.packing import Chunk, Group
from microtome.training.finetune.forward import layer
from microtome.training.mlm.rows import Batch


def masked_states(family: Family, batch: Batch) -> Tensor:
    """The final states at the masked positions: (B·K, D), row by row."""
    chunk = chunk_of(batch)
    states = family.embed(chunk.ids, chunk.positions, chunk.segments)  # (B·L, D)
    for index in range(family.shape.n_layers):
        states = layer(family, index, states, chunk)
    n_rows, length = batch.ids.shape
    masked = torch.from_numpy(batch.positions + length * np.arange(n_rows)[:, None])
    return family.final_norm(states[masked.flatten()])


def masked_loss(family: Family, batch: Batch) -> Tensor:
    """Mean cross-entropy of the masked tokens."""
    logits = family.mlm_decoder()(family.mlm_features(masked_states(family, batch)))
    return torch.nn.functional.cross_entropy(logits, batch.targets)


def chunk_of(batch: Batch) -> Chunk:
    """The rows as the families' forward pass takes them: side by side, one group of one length."""
    n_rows, length = batch.ids.shape
    positions = np.arange(length) + batch.starts[:, None]
    return Chunk(
        ids=torch.from_numpy(batch.ids.ravel()),
        positions=torch.from_numpy(positions.ravel()),
        segments=torch.from_numpy(batch.segments.ravel()),
        groups=(Group(0, n_rows, length),),
        texts=np.arange(n_rows),
        tokens=np.arange(n_rows * length),
    )
