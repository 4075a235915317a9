"""The loss of a packed chunk, summed over its rows: the caller divides by the effective batch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from microtome.observe.packing import Chunk
from microtome.tasks.task import Kind


def summed_loss(kind: Kind, logits: Tensor, targets: Tensor, chunk: Chunk) -> Tensor:
    """Cross-entropy, squared error, or the mean of the start's and the end's cross-entropy."""
    logits = logits.float()  # half-precision losses lose what small gradients need
    if kind == "regression":
        return functional.mse_loss(logits[:, 0], targets.float(), reduction="sum")
    if kind == "span":
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
