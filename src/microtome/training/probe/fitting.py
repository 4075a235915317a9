"""Linear classifiers on cached states, those of all depths at once, and a pooler below them.

``paper``: the recipe of fine-tuning (AdamW, 3 epochs), which hardly moves a linear layer.
``converged``: the minimum of the same loss with an L2 penalty, on standardised features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax
from torch import Tensor
from torch.nn import functional

from microtome.errors import Diverged
from microtome.families.seam import Family
from microtome.tasks.task import Kind
from microtome.training.finetune.examples import Batches
from microtome.training.optimisation import rate_factor
from microtome.training.probe.states import FloatArray
from microtome.training.recipe import Recipe

INITIAL_STD = 0.02  # as BERT's heads begin
L2 = 1.0
"""Penalty ½·L2·‖W‖² next to the summed loss: scikit-learn's C = 1."""

ROWS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Pooler:
    """tanh(x · weight + bias), as BERT has it before its classifier."""

    weight: Tensor  # (D, D), or (depths, D, D) when each depth has its own
    bias: Tensor  # (D,), or (depths, D)

    @classmethod
    def of(cls, family: Family) -> Pooler:
        """The pre-trained one."""
        layer = family.pooler_layer()
        return cls(layer.weight.detach().float().T.clone(), layer.bias.detach().float().clone())

    def copies(self, n_depths: int) -> Pooler:
        """One for every depth, ready to be trained."""
        weight, bias = (
            part.expand(n_depths, *part.shape).clone().requires_grad_()
            for part in (self.weight, self.bias)
        )
        return Pooler(weight, bias)

    def __call__(self, states: Tensor) -> Tensor:
        """(depths, n, D) → (depths, n, D)."""
        return torch.baddbmm(self.bias[:, None], states, self.weight).tanh()


@dataclass(frozen=True, eq=False)
class LinearProbes:
    """One linear layer per depth, and one pooler below it where it was trained along."""

    weight: Tensor  # (depths, D, outputs)
    bias: Tensor  # (depths, outputs)
    pooler: Pooler | None = None

    def __call__(self, states: Tensor) -> Tensor:
        """(depths, n, D) → (depths, n, outputs)."""
        read = states if self.pooler is None else self.pooler(states)
        return torch.baddbmm(self.bias[:, None], read, self.weight)

    @torch.no_grad()
    def logits(self, features: FloatArray) -> FloatArray:
        """(depths, n, D) → (depths, n, outputs), some rows at a time."""
        parts = [
            self(_tensor(features[:, start : start + ROWS_AT_ONCE]))
            for start in range(0, features.shape[1], ROWS_AT_ONCE)
        ]
        return np.asarray(torch.cat(parts, 1).numpy())

    @property
    def parameters(self) -> list[Tensor]:
        """Matrices first, each followed by its bias."""
        pooler = [] if self.pooler is None else [self.pooler.weight, self.pooler.bias]
        return [self.weight, self.bias, *pooler]


def fit_paper(
    features: FloatArray,
    targets: NDArray[Any],
    kind: Kind,
    n_outputs: int,
    recipe: Recipe,
    *,
    init_seed: int,
    data_seed: int,
    pooler: Pooler | None = None,
) -> LinearProbes:
    """Train as the paper does; all depths start equal and see the same batches, each alone."""
    n_depths, n_rows, width = features.shape
    generator = torch.Generator().manual_seed(init_seed)
    start = INITIAL_STD * torch.randn(width, n_outputs, generator=generator)
    probes = LinearProbes(
        start.expand(n_depths, -1, -1).clone().requires_grad_(),
        torch.zeros(n_depths, n_outputs, requires_grad=True),
        None if pooler is None else pooler.copies(n_depths),
    )
    groups: list[dict[str, Any]] = [
        {"params": [p for p in probes.parameters if p.dim() == 3]},
        {"params": [p for p in probes.parameters if p.dim() == 2], "weight_decay": 0.0},
    ]
    adamw = torch.optim.AdamW(
        groups, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
    )
    labels = torch.from_numpy(np.asarray(targets))
    batches = Batches.of(n_rows, recipe)
    for step in range(batches.n_steps):
        rows = batches.rows_of(step, data_seed)
        batch = _tensor(features[:, rows])  # (depths, B, D)
        loss = _losses(probes(batch), labels[rows], kind)
        if not bool(torch.isfinite(loss).all()):
            raise Diverged(
                f"the probes diverged at step {step + 1} of {batches.n_steps} "
                f"(learning rate {recipe.learning_rate:g})",
                "take a smaller learning rate",
            )
        loss.sum().backward()  # type: ignore[no-untyped-call]
        _clip_each_(probes.parameters, recipe.clip)
        for group in adamw.param_groups:
            group["lr"] = recipe.learning_rate * rate_factor(step, batches.n_steps, recipe.warmup)
        adamw.step()
        adamw.zero_grad()
    for parameter in probes.parameters:
        parameter.requires_grad_(False)
    return probes


def fit_converged(
    features: FloatArray, targets: NDArray[Any], kind: Kind, n_outputs: int, *, l2: float = L2
) -> LinearProbes:
    """The minimum, depth by depth: a product over all rows is as fast alone."""
    solved = [_solved(depth, targets, kind, n_outputs, l2) for depth in features]
    return LinearProbes(
        torch.stack([weight for weight, _ in solved]), torch.stack([bias for _, bias in solved])
    )


def _losses(logits: Tensor, targets: Tensor, kind: Kind) -> Tensor:
    """The mean loss of every depth: logits (depths, B, outputs) → (depths,)."""
    if kind == "regression":
        return (logits[..., 0] - targets.float()).square().mean(1)
    repeated = targets.expand(len(logits), -1)
    return functional.cross_entropy(logits.transpose(1, 2), repeated, reduction="none").mean(1)


@torch.no_grad()
def _clip_each_(parameters: Sequence[Tensor], most: float) -> None:
    """Each depth's gradient to norm ``most``: as if it were trained alone."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    squares = torch.stack([g.square().flatten(1).sum(1) for g in gradients]).sum(0)
    factor = (most / (squares.sqrt() + 1e-6)).clamp(max=1.0)  # (depths,)
    for gradient in gradients:
        gradient *= factor.view(-1, *[1] * (gradient.dim() - 1))


def _solved(
    features: FloatArray, targets: NDArray[Any], kind: Kind, n_outputs: int, l2: float
) -> tuple[Tensor, Tensor]:
    scaled, mean, spread = standardized(features)
    if kind == "regression":
        weight, bias = _ridge(scaled, targets.astype(np.float64), l2)
    else:
        weight, bias = logistic(scaled, np.asarray(targets, dtype=np.int64), n_outputs, l2)
    weight = weight / spread[:, None]  # back to the features as they are
    return torch.from_numpy(weight).float(), torch.from_numpy(bias - mean @ weight).float()


def standardized(
    features: FloatArray,
) -> tuple[FloatArray, NDArray[np.float64], NDArray[np.float64]]:
    """A copy of features (n, D) with mean 0 and spread 1, and the means and spreads they had."""
    mean, spread = features.mean(0, dtype=np.float64), features.std(0, dtype=np.float64)
    spread[spread < 1e-8] = 1.0  # a constant feature says nothing
    scaled = np.array(features, dtype=np.float32)  # single precision: half a gigabyte is saved
    scaled -= mean.astype(np.float32)
    scaled /= spread.astype(np.float32)
    return scaled, mean, spread


def _ridge(
    scaled: FloatArray, targets: NDArray[np.float64], l2: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    centre = targets.mean()
    gram = (scaled.T @ scaled).astype(np.float64) + l2 * np.eye(scaled.shape[1])
    weight = np.linalg.solve(gram, scaled.T @ (targets - centre))
    return weight[:, None], np.array([centre])


def logistic(
    scaled: FloatArray, targets: NDArray[np.int64], n_outputs: int, l2: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Softmax regression by L-BFGS: weights (D, outputs), biases; these aren't penalised.

    ``targets`` are 0 to ``n_outputs`` − 1, and each of them occurs.

    Two labels have one vector d between them, as in scikit-learn. Softmax splits it into ±d/2,
    whose squares add up to half of ‖d‖², so their penalty is doubled.
    """
    l2 = 2 * l2 if n_outputs == 2 else l2
    n_rows, width = scaled.shape
    one_hot = np.eye(n_outputs)[targets]

    def objective(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weight, bias = flat[:-n_outputs].reshape(width, n_outputs), flat[-n_outputs:]
        scores = (scaled @ weight.astype(np.float32)).astype(np.float64) + bias
        log_shares = log_softmax(scores, axis=1)
        wrong = np.exp(log_shares) - one_hot
        loss = -float((log_shares * one_hot).sum()) + 0.5 * l2 * float((weight**2).sum())
        pull = (scaled.T @ wrong.astype(np.float32)).astype(np.float64)
        gradient = np.concatenate([(pull + l2 * weight).ravel(), wrong.sum(0)])
        return loss / n_rows, gradient / n_rows

    start = np.zeros((width + 1) * n_outputs)
    solved = minimize(
        objective, start, jac=True, method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 10000, "ftol": 1e-10, "gtol": 1e-6, "maxcor": 20},
    )  # fmt: skip
    return solved.x[:-n_outputs].reshape(width, n_outputs), solved.x[-n_outputs:]


def _tensor(values: FloatArray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values))
