"""Fused AdamW, warm-up and linear decay; the optimiser's state as named tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


def rate_factor(step: int, n_steps: int, warmup: float) -> float:
    """The share of the peak rate at ``step`` (0-based), as in the papers' scripts.

    From 0 at the first step up to 1 after the warm-up, then linearly down to 0 after the last.
    """
    n_warmup = math.ceil(n_steps * warmup)
    if step < n_warmup:
        return step / n_warmup
    return max(0.0, (n_steps - step) / max(1, n_steps - n_warmup))


class RowGradients:
    """Sparse gradients as the whole matrices that AdamW takes, zero but for the rows they name.

    A step looks up a few hundred rows of the word embeddings. Fresh zeros for all 30,000 take 20
    times as long as the rows do, so the matrices are kept, and only those rows are wiped.
    """

    def __init__(self) -> None:
        self._matrices: dict[Tensor, Tensor] = {}
        self._written: list[tuple[Tensor, Tensor]] = []  # a matrix, its rows that aren't zero

    def write(self, parameters: Iterable[Tensor]) -> None:
        """Make the sparse ones among the parameters' gradients whole."""
        for value in parameters:
            if value.grad is None or not value.grad.is_sparse:
                continue
            gradient = value.grad.coalesce()
            if value not in self._matrices:
                self._matrices[value] = torch.zeros_like(value, requires_grad=False)
            matrix, rows = self._matrices[value], gradient.indices()[0]
            matrix[rows] = gradient.values()
            value.grad = matrix
            self._written.append((matrix, rows))

    def wipe(self) -> None:
        """The gradients aren't needed any more."""
        for matrix, rows in self._written:
            matrix.index_fill_(0, rows, 0.0)
        self._written.clear()


class Optimizer:
    """AdamW over named parameters; those of one dimension (biases, norms) aren't decayed."""

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        *,
        learning_rate: float,
        weight_decay: float,
        clip: float,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        self.parameters = dict(parameters)
        self.learning_rate, self.clip = learning_rate, clip
        self._rows = RowGradients()
        values = list(self.parameters.values())
        groups = [
            {"params": [p for p in values if p.dim() > 1], "weight_decay": weight_decay},
            {"params": [p for p in values if p.dim() <= 1], "weight_decay": 0.0},
        ]
        self.adamw = torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=learning_rate,
            betas=betas,
            fused=True,
        )

    def step(self, factor: float) -> float:
        """Clip and apply the gradients at ``factor`` of the peak rate; gives their norm.

        Nothing is applied where the norm isn't a number.
        """
        self._rows.write(self.parameters.values())
        norm = float(nn.utils.clip_grad_norm_(self.parameters.values(), self.clip))
        if math.isfinite(norm):
            for group in self.adamw.param_groups:
                group["lr"] = self.learning_rate * factor
            self.adamw.step()
            self._rows.wipe()
        else:
            self._rows = RowGradients()  # times what isn't a number, zeros aren't zeros either
        self.clear()
        return norm

    def clear(self) -> None:
        """Forget the gradients."""
        self.adamw.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """``NAME/exp_avg`` and so on for every parameter that was updated."""
        return {
            f"{name}/{moment}": self.adamw.state[value][moment]
            for name, value in self.parameters.items()
            if value in self.adamw.state
            for moment in _MOMENTS
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take up a state that :meth:`state` gave."""
        for name, value in self.parameters.items():
            if f"{name}/step" in state:
                self.adamw.state[value] = {
                    moment: state[f"{name}/{moment}"].to(value.device).clone()
                    for moment in _MOMENTS
                }
