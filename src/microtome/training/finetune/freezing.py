"""Which weights stay as they are, and which layers a step leaves out."""

from __future__ import annotations

import torch
from torch import nn

from microtome.errors import RequestError
from microtome.families.seam import Family
from microtome.models.heads import is_head_tensor, is_pooler_tensor
from microtome.training.recipe import Freeze, derived


def freeze_(family: Family, freeze: Freeze) -> tuple[str, ...]:
    """Switch off the gradients of what ``freeze`` names; gives the names of the frozen tensors."""
    frozen = frozen_names(family, freeze)
    for name, parameter in family.model.named_parameters():
        parameter.requires_grad_(name not in frozen)
    return tuple(sorted(frozen))


def frozen_names(family: Family, freeze: Freeze) -> frozenset[str]:
    """The parameters that ``freeze`` names."""
    names = [name for name, _ in family.model.named_parameters()]
    if freeze is None:
        return frozenset()
    if freeze == "encoder":
        return frozenset(n for n in names if not is_head_tensor(n) and not is_pooler_tensor(n))
    n_layers = 0 if freeze == "embeddings" else int(freeze)
    if n_layers > family.shape.n_layers:
        raise RequestError(
            f"freeze must be at most {family.shape.n_layers}, the model's layers, got {n_layers}"
        )
    prefixes = {f"{family.layer_prefix(i)}." for i in range(n_layers)}
    above = {f"{family.layer_prefix(i)}." for i in range(n_layers, family.shape.n_layers)}
    if prefixes & above:
        raise RequestError(
            f"freeze must be 0, embeddings or encoder for this {family.name}, which applies one "
            f"layer at every depth, got {n_layers}",
            'put unshare() first, or freeze all layers: freeze="encoder"',
        )
    layers = {name for name in names if name.startswith(tuple(prefixes))}
    return frozenset(layers | embedding_names(family))


def embedding_names(family: Family) -> set[str]:
    """The parameters that the state at depth 0 depends on, as autograd says."""
    parameters = dict[str, nn.Parameter](family.model.named_parameters())
    token = torch.zeros(1, dtype=torch.long, device=family.model.device)
    with torch.enable_grad():
        before = {name: value.requires_grad for name, value in parameters.items()}
        for value in parameters.values():
            value.requires_grad_(True)
        total = family.embed(token, token, token).sum()
        gradients = torch.autograd.grad(total, list(parameters.values()), allow_unused=True)
        for name, value in parameters.items():
            value.requires_grad_(before[name])
    reached = zip(parameters, gradients, strict=True)
    return {name for name, gradient in reached if gradient is not None}


def check_layerdrop(family: Family, rate: float) -> None:
    """Refuse LayerDrop where several layers share their weights."""
    if rate and len(set(family.sharing)) < family.shape.n_layers:
        raise RequestError(
            f"layerdrop must be 0 for this {family.name}, which applies the same weights at every "
            f"depth, got {rate:g}",
            "put unshare() first, or leave layerdrop at 0",
        )


def dropped_layers(n_layers: int, rate: float, *, seed: int, step: int) -> frozenset[int]:
    """The layers that ``step`` leaves out: each with chance ``rate``, independently."""
    if not rate:
        return frozenset()
    generator = torch.Generator().manual_seed(derived(seed, "layerdrop", step))
    return frozenset((torch.rand(n_layers, generator=generator) < rate).nonzero()[:, 0].tolist())
