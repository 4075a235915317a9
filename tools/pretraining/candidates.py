"""Mean cross-entropy of a vocabulary projection, without ever holding all logits.

The whole vocabulary is two fifths of a shallow model's work. Early stages therefore compare the
true token with *candidates*: the commonest tokens always, and a fresh sample of the others, each of
which stands for several. The softmax's denominator is unbiased; the last stages use all tokens.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from microtome.training.mlm.rows import Array

# Rows whose logits are in flight: 256 × 8,192 × 4 bytes = 8 MB stays near the cores' caches.
CHUNK = 256


class _VocabularyLoss(torch.autograd.Function):
    """The gradient is made on the way forward, chunk by chunk: softmax − one-hot.

    The true token's logit is a column of its own, since it may not be among the candidates.
    """

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        features: Tensor,  # (n, E)
        weight: Tensor,  # (S, E), the candidates' rows
        bias: Tensor,  # (S,), plus the logarithm of how many tokens a candidate stands for
        true_weight: Tensor,  # (n, E)
        true_bias: Tensor,  # (n,)
        places: Tensor,  # (n,), where the true token is among the candidates, or −1
    ) -> Tensor:
        n = len(features)
        own = (features * true_weight).sum(1, keepdim=True) + true_bias[:, None]
        d_features, d_own = torch.empty_like(features), torch.empty_like(own)
        d_weight, d_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        total = 0.0
        for begin in range(0, n, CHUNK):
            rows = slice(begin, begin + CHUNK)
            x, true, place = features[rows], own[rows], places[rows]
            z = torch.addmm(bias, x, weight.t())  # (chunk, S)
            among = place >= 0
            z[among, place[among]] = -torch.inf
            top = torch.maximum(z.amax(1, keepdim=True), true)
            z.sub_(top).exp_()
            true_share = (true - top).exp()
            sums = z.sum(1, keepdim=True) + true_share
            total += float((sums.log() + top - true).sum())
            z /= sums * n
            d_own[rows] = (true_share / sums - 1) / n
            torch.mm(z, weight, out=d_features[rows])
            d_weight.addmm_(z.t(), x)
            d_bias += z.sum(0)
        d_features.addcmul_(d_own, true_weight)
        ctx.save_for_backward(d_features, d_weight, d_bias, d_own * features, d_own[:, 0])
        return features.new_tensor(total / n)

    @staticmethod
    def backward(ctx: Any, *outputs: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        (scale,) = outputs
        return (*(gradient * scale for gradient in ctx.saved_tensors), None)


def vocabulary_loss(
    features: Tensor,
    weight: Tensor,
    bias: Tensor,
    labels: Tensor,
    candidates: Candidates | None = None,
) -> Tensor:
    """Mean cross-entropy of ``features @ weight.T + bias`` at ``labels``.

    Shapes (n, E), (V, E), (V,), (n,). With `candidates` the denominator is estimated from them.
    """
    true_weight, true_bias = weight[labels], bias[labels]
    places = labels
    if candidates is not None:
        places = candidates.places(len(weight))[labels]
        weight = weight[candidates.ids]
        bias = bias[candidates.ids] + candidates.log_counts
    inputs = (features, weight, bias, true_weight, true_bias, places)
    loss: Tensor = _VocabularyLoss.apply(*inputs)  # type: ignore[no-untyped-call]
    return loss


class Candidates:
    """Tokens that stand for the whole vocabulary in one step."""

    def __init__(self, ids: Array, counts: Array) -> None:
        self.ids = torch.from_numpy(ids)
        self.log_counts = torch.from_numpy(np.log(counts).astype(np.float32))

    def places(self, n_vocabulary: int) -> Tensor:
        """Where every token is among the candidates, or −1: (V,)."""
        places = torch.full((n_vocabulary,), -1)
        places[self.ids] = torch.arange(len(self.ids))
        return places


def draw_candidates(by_frequency: Array, n: int, random: np.random.Generator) -> Candidates:
    """The n/2 commonest tokens, and n/2 of the others, which share the others' number evenly."""
    n_common = n // 2
    common, rare = by_frequency[:n_common], by_frequency[n_common:]
    drawn = random.choice(rare, n - n_common, replace=False)
    counts = np.concatenate([np.ones(n_common), np.full(len(drawn), len(rare) / len(drawn))])
    return Candidates(np.concatenate([common, drawn]), counts)
