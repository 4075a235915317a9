"""Two models compared to the bit (`from same_weights import same_weights`)."""

from __future__ import annotations

import torch


def same_weights(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    """Whether both have the same tensors by name, and every one is equal to the bit."""
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[n], theirs[n]) for n in ours)
