"""What a model costs: parameters, floating-point operations per token, bytes.

FLOPs are those of the matrix products, a multiplication and an addition counting as two:

- 2 × the weights of every linear layer that a token goes through. A layer that is shared (ALBERT)
  counts each time it is applied;
- 4 × length × width per layer for attention: queries times keys, and probabilities times values. A
  sliding window is counted as full attention, since that is what is computed;
- position terms of attention (DeBERTa), as transformers computes them: for its whole table of
  distances, once per text;
- what is done once per text (pooler, classifier) is divided by the length. EuroBERT's classifier
  runs on every token, unless its config says otherwise.

Norms, softmax, activations and embedding look-ups are left out, as is usual.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn
from transformers import PreTrainedModel

from microtome.families import adapt
from microtome.families.seam import Family
from microtome.models.provenance import provenance_of


@dataclass(frozen=True)
class Cost:
    """The price of a model; ``bytes`` is the size of its weights in the dtype of its file."""

    parameters: int
    flops_per_token: float
    bytes: int


def cost(model: PreTrainedModel, *, length: int = 128) -> Cost:
    """Count a model's parameters (tied ones once), FLOPs per token, and bytes.

    ``length`` is that of the text in tokens: attention costs more per token in a longer one.
    """
    # named_parameters gives a shared tensor once.
    n_parameters = sum(value.numel() for _, value in model.named_parameters())
    provenance = provenance_of(model)
    dtype = getattr(torch, provenance.dtype) if provenance else model.dtype
    family = adapt(model)
    flops = _layer_flops(family, length) + _outer_flops(family, length)
    return Cost(n_parameters, flops, n_parameters * dtype.itemsize)


def _layer_flops(family: Family, length: int) -> float:
    """The blocks: a layer that is shared is in ``layers`` once for every application."""
    weights = sum(_linear_weights(layer.modules()) for layer in family.layers)
    attention = 4 * length * family.shape.width * family.shape.n_layers
    positions = family.position_flops(length) * family.shape.n_layers / length
    return float(2 * weights + attention) + positions


def _outer_flops(family: Family, length: int) -> float:
    """What is outside the blocks: projections of the embeddings, pooler, head."""
    inside = f"{family.layers_path}."
    total = 0.0
    for name, module in family.model.named_modules():
        if not name.startswith(inside):
            per_token = 1 / length if _runs_once_per_text(family, name) else 1
            total += 2 * _linear_weights([module]) * per_token
    if family.head == "mlm" and (decoder := family.mlm_decoder()) not in {*family.model.modules()}:
        total += 2 * _linear_weights([decoder])  # a head that multiplies by the embeddings itself
    return total


def _linear_weights(modules: Iterable[nn.Module]) -> int:
    return sum(m.weight.numel() for m in modules if isinstance(m, nn.Linear))


def _runs_once_per_text(family: Family, name: str) -> bool:
    if "pooler" in name.split("."):
        return True
    in_head = not name.startswith(f"{family.model.base_model_prefix}.")
    return in_head and family.head == "classification" and family.reads != "late"
