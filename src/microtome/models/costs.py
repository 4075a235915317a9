"""What a model costs: parameters, floating-point operations per token, bytes.

FLOPs are those of the matrix products, a multiplication and an addition counting as two:

- 2 × the weights of every linear layer that a token goes through. A layer that is shared (ALBERT)
  counts each time it is applied;
- 4 × length × width per layer for attention: queries times keys, and probabilities times values. A
  sliding window is counted as full attention, since that is what is computed;
- what is done once per text (pooler, classifier) is divided by the length.

Norms, softmax, activations and embedding look-ups are left out, as is usual.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from microtome.families.catalogue import facts_of
from microtome.models.provenance import provenance_of

_GROUP = re.compile(r"_layer_groups\.(\d+)\.")


@dataclass(frozen=True)
class Cost:
    """The price of a model; ``bytes`` is the size of its weights in the dtype of its file."""

    parameters: int
    flops_per_token: float
    bytes: int


def cost(model: PreTrainedModel, *, length: int = 128) -> Cost:
    """Count a model's parameters (tied ones once), FLOPs per token of a text, and bytes."""
    # named_parameters gives a shared tensor once.
    n_parameters = sum(value.numel() for _, value in model.named_parameters())
    provenance = provenance_of(model)
    dtype = getattr(torch, provenance.dtype) if provenance else model.dtype
    flops = _linear_flops(model, length) + _attention_flops(model, length)
    return Cost(n_parameters, flops, n_parameters * dtype.itemsize)


def _linear_flops(model: PreTrainedModel, length: int) -> float:
    applications = _applications(model)
    total = 0.0
    # A module that is in the model twice runs twice, so duplicates are kept.
    for name, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, torch.nn.Linear):
            group = _GROUP.search(name)
            times = applications[int(group[1])] if group else 1
            per_token = 1 / length if _runs_once_per_text(model, name) else 1
            total += 2 * module.weight.numel() * times * per_token
    return total


def _attention_flops(model: PreTrainedModel, length: int) -> float:
    names = facts_of(model.config.model_type).config
    n_layers = getattr(model.config, names.layers) * getattr(model.config, "inner_group_num", 1)
    return float(4 * length * getattr(model.config, names.width) * n_layers)


def _applications(model: PreTrainedModel) -> Counter[int]:
    """How often each shared group of layers is applied; empty for a model that shares none."""
    n_groups = getattr(model.config, "num_hidden_groups", 0)
    if not n_groups:
        return Counter()
    n_layers = model.config.num_hidden_layers
    # The rule of the model itself: layer i is of group int(i / (layers / groups)).
    return Counter(int(i / (n_layers / n_groups)) for i in range(n_layers))


def _runs_once_per_text(model: PreTrainedModel, name: str) -> bool:
    if "pooler" in name.split("."):
        return True
    outside = not name.startswith(f"{model.base_model_prefix}.")
    return outside and type(model).__name__.endswith("ForSequenceClassification")
