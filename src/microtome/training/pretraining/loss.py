"""Mean cross-entropy of a vocabulary projection, without ever holding all logits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# Rows whose logits are in flight: 256 × 8,192 × 4 bytes = 8 MB stays near the cores' caches.
CHUNK = 256


class _VocabularyLoss(torch.autograd.Function):
    """The gradient is made on the way forward, chunk by chunk (softmax − one-hot)."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, labels: Tensor) -> Tensor:  # noqa: ANN401
        n = len(features)
        d_features = torch.empty_like(features)
        d_weight, d_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        total = 0.0
        for begin in range(0, n, CHUNK):
            x, label = features[begin : begin + CHUNK], labels[begin : begin + CHUNK, None]
            z = torch.addmm(bias, x, weight.t())  # (chunk, V)
            z -= z.amax(1, keepdim=True)
            true = z.gather(1, label)
            sums = z.exp_().sum(1, keepdim=True)
            total += float((sums.log() - true).sum())
            z /= sums * n
            z.scatter_add_(1, label, torch.full_like(true, -1 / n))
            torch.mm(z, weight, out=d_features[begin : begin + CHUNK])
            d_weight.addmm_(z.t(), x)
            d_bias += z.sum(0)
        ctx.save_for_backward(d_features, d_weight, d_bias)
        return features.new_tensor(total / n)

    @staticmethod
    def backward(ctx: Any, *outputs: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        d_features, d_weight, d_bias = ctx.saved_tensors
        (scale,) = outputs
        return d_features * scale, d_weight * scale, d_bias * scale, None


def vocabulary_loss(features: Tensor, weight: Tensor, bias: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of ``features @ weight.T + bias`` at ``labels``; (n, E), (V, E), (V,), (n,)."""
    loss: Tensor = _VocabularyLoss.apply(features, weight, bias, labels)
    return loss
