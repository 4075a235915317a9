"""Deeper models by hand: plain modules, nothing of ours."""

from __future__ import annotations

import copy

import torch


def first_layers_twice(body, n_wanted):
    """The first layers twice, each copy behind its original, in a plain module list."""
    deeper = copy.deepcopy(body)
    layers = deeper.encoder.layer
    more = n_wanted - len(layers)
    order = [i for i in range(len(layers)) for _ in range(2 if i < more else 1)]
    deeper.encoder.layer = torch.nn.ModuleList([copy.deepcopy(layers[i]) for i in order])
    deeper.config.num_hidden_layers = n_wanted
    return deeper
