"""Deepen a model in training: progressive stacking (Gong et al. 2019), by our own edits."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor
from transformers import PreTrainedModel

from microtome.edits import Order
from microtome.families import adapt


def stacking(n_layers: int, target: int) -> Order:
    """The edit that puts the whole stack on top of itself until there are `target` layers."""
    return Order(*(index % n_layers for index in range(target)))


def grown(model: PreTrainedModel, target: int) -> PreTrainedModel:
    """A model with `target` layers; where layers are shared, they are only applied more often."""
    n_layers = adapt(model).shape.n_layers
    return model if target == n_layers else stacking(n_layers, target)(model)


def grown_state(
    state: Mapping[str, Tensor], before: PreTrainedModel, after: PreTrainedModel
) -> dict[str, Tensor]:
    """An optimiser's state for the grown model: a copied layer has its original's moments."""
    old, new = adapt(before), adapt(after)
    if new.shape.n_layers == old.shape.n_layers or old.depth_rules.shared:
        return dict(state)
    order = stacking(old.shape.n_layers, new.shape.n_layers).layers
    moved = {key: value for key, value in state.items() if f"{old.layers_path}." not in key}
    for place, source in enumerate(order):
        was, now = f"{old.layer_prefix(source)}.", f"{new.layer_prefix(place)}."
        moved |= {key.replace(was, now): value for key, value in state.items() if was in key}
    return moved
