"""KL between what the output layer says of two states: some positions at a time, in nats.

A vocabulary of 30,000 makes a position's logits 80 times as large as its state, so they are
computed for a few positions, used, and forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor
from torch.nn import functional

from microtome.observe import Readout

VALUES_TOGETHER = 2**22  # scores held at once, for each reading: 16 MB in single precision


def row_slices(readout: Readout, n_rows: int) -> Iterator[slice]:
    """All rows in slices whose scores fit."""
    step = max(1, VALUES_TOGETHER // readout.n_tokens)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def log_shares(readout: Readout, features: Tensor) -> Tensor:
    """The log of each token's share in the distribution: (n, E) → (n, V)."""
    return functional.linear(features, readout.weight, readout.bias).log_softmax(-1)


def divergence(wanted: Tensor, given: Tensor) -> Tensor:
    """KL(wanted || given) of two log distributions: (n, V), (n, V) → (n,), in double precision."""
    return (wanted.exp() * (wanted - given)).double().sum(-1)


def feature_gradient(readout: Readout, features: Tensor, wanted: Tensor) -> Tensor:
    """∂ KL(wanted || given) / ∂ features, row by row: (n, E), (n, V) → (n, E).

    For scores it is the difference of the shares, so no graph over the vocabulary is needed.
    """
    shares = log_shares(readout, features).exp_()
    return shares.sub_(wanted.exp()) @ readout.weight
