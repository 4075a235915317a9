"""Muon for the matrices inside the layers, fused AdamW for everything else.

Muon (Jordan et al. 2024) makes the momentum of a weight matrix orthogonal before it is applied.
The state is a flat dictionary of tensors by parameter name, so that it is stored as safetensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from microtome.families import adapt

# Newton–Schulz coefficients of Muon's authors: five rounds bring singular values to about 1.
QUINTIC = (3.4445, -4.7750, 2.0315)


@dataclass(frozen=True)
class Rates:
    """Peak learning rates and the other settings of both optimisers."""

    matrices: float = 0.02
    others: float = 2e-3
    momentum: float = 0.95
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.01
    matrix_decay: float = 0.3  # Muon's steps are large: without it matrices grow without end
    clip: float = 1.0


class MuonAndAdamW:
    """One step over named parameters; `matrices` names those that Muon takes."""

    def __init__(
        self, parameters: Mapping[str, nn.Parameter], matrices: frozenset[str], rates: Rates
    ) -> None:
        self.rates = rates
        self.parameters = dict(parameters)
        self.matrices = {name: parameters[name] for name in sorted(matrices)}
        self.momenta = {name: torch.zeros_like(p) for name, p in self.matrices.items()}
        self.others = {n: p for n, p in self.parameters.items() if n not in matrices}
        decayed = [p for p in self.others.values() if p.dim() > 1]
        plain = [p for p in self.others.values() if p.dim() <= 1]
        groups: list[dict[str, Any]] = [{"params": decayed}]
        groups.append({"params": plain, "weight_decay": 0.0})
        self.adamw = torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=rates.others,
            betas=rates.betas,
            weight_decay=rates.weight_decay,
            fused=True,
        )

    @torch.no_grad()
    def step(self, factor: float) -> float:
        """Clip, then one step at `factor` of the peak rates; returns the gradient's norm."""
        norm = nn.utils.clip_grad_norm_(self.parameters.values(), self.rates.clip)
        for group in self.adamw.param_groups:
            group["lr"] = self.rates.others * factor
        self.adamw.step()
        for names in self._by_shape():
            self._step_matrices(names, self.rates.matrices * factor)
        for parameter in self.parameters.values():
            parameter.grad = None
        return float(norm)

    def _by_shape(self) -> list[list[str]]:
        shapes: dict[torch.Size, list[str]] = {}
        for name, parameter in self.matrices.items():
            shapes.setdefault(parameter.shape, []).append(name)
        return list(shapes.values())

    def _step_matrices(self, names: list[str], rate: float) -> None:
        gradients = [self.matrices[name].grad for name in names]
        gradient = torch.stack([g for g in gradients if g is not None])  # (n, rows, columns)
        momentum = torch.stack([self.momenta[name] for name in names])
        momentum.lerp_(gradient, 1 - self.rates.momentum)
        update = orthogonalized(gradient.lerp(momentum, self.rates.momentum))
        rows, columns = update.shape[-2:]
        scale = max(1.0, rows / columns) ** 0.5
        for place, name in enumerate(names):
            self.momenta[name].copy_(momentum[place])
            weight = self.matrices[name]
            weight.mul_(1 - rate * self.rates.matrix_decay).add_(update[place], alpha=-rate * scale)

    def state(self) -> dict[str, Tensor]:
        """Everything but the weights, by name: `muon/NAME`, `adamw/NAME/first|second|step`."""
        state = {f"muon/{name}": momentum for name, momentum in self.momenta.items()}
        for name, parameter in self.others.items():
            moments = self.adamw.state.get(parameter)
            if moments:
                state[f"adamw/{name}/first"] = moments["exp_avg"]
                state[f"adamw/{name}/second"] = moments["exp_avg_sq"]
                state[f"adamw/{name}/step"] = moments["step"]
        return state

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take up a state that :meth:`state` gave."""
        for name, momentum in self.momenta.items():
            momentum.copy_(state[f"muon/{name}"])
        for name, parameter in self.others.items():
            if f"adamw/{name}/step" in state:
                self.adamw.state[parameter] = {
                    "step": state[f"adamw/{name}/step"].clone(),
                    "exp_avg": state[f"adamw/{name}/first"].clone(),
                    "exp_avg_sq": state[f"adamw/{name}/second"].clone(),
                }


def layer_matrices(model: PreTrainedModel) -> frozenset[str]:
    """The names of the weight matrices inside the layers."""
    prefix = f"{adapt(model).layers_path}."
    return frozenset(
        n for n, p in model.named_parameters() if n.startswith(prefix) and p.dim() == 2
    )


def orthogonalized(matrices: Tensor) -> Tensor:
    """The nearest matrices with singular values about 1, by Newton–Schulz; (n, rows, columns)."""
    a, b, c = QUINTIC
    x: Tensor = matrices / (matrices.norm(dim=(1, 2), keepdim=True) + 1e-7)
    tall = x.shape[1] > x.shape[2]
    if tall:
        x = x.transpose(1, 2)
    for _ in range(5):
        gram = x @ x.transpose(1, 2)
        mixed = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, mixed, x, beta=a)
    return x.transpose(1, 2) if tall else x
