"""Attention maps drawn by hand: random ones, pure structures, stripes and lines on a background."""

from __future__ import annotations

import torch


def random_maps(n, length, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, length, length, generator=generator).mul(2).softmax(-1)


def pure(kind, length=16, border=8):
    """A map that is nothing but one structure."""
    place = torch.arange(length)
    if kind == "stripe":
        weights = (place == 0).float().expand(length, length)
    elif kind == "line":
        weights = torch.eye(length).roll(-1, 0)
    elif kind == "block":
        second = place >= border
        weights = (second[:, None] == second[None]).float()
    else:
        weights = torch.ones(length, length)
    return weights / weights.sum(-1, keepdim=True)


def structured(length, stripe=0.0, line=0.0, *, column=0, offset=0):
    """A column and a line with these shares of every row; the rest is nearly even background."""
    generator = torch.Generator().manual_seed(length)
    background = torch.randn(length, length, generator=generator).mul(0.5).softmax(-1)
    place = torch.arange(length)
    weights = (1 - stripe - line) * background
    weights[:, column] += stripe
    weights += line * (place[None] - place[:, None] == offset)
    return weights / weights.sum(-1, keepdim=True)
