"""Apply edits to a model: a new model comes out, the one handed in stays as it was."""

from __future__ import annotations

import copy
from typing import cast

import torch
from transformers import PreTrainedModel

from microtome.edits import Disable, Edit, Edits, Randomize, Reinit, Unshare
from microtome.edits.depth import DepthEdit
from microtome.edits.layer_order import new_order
from microtome.errors import EditError
from microtome.families import adapt
from microtome.families.seam import Family
from microtome.models.provenance import attach, provenance_of
from microtome.surgery import weights
from microtome.values import format_ranges


@torch.no_grad()
def apply(edits: Edit | Edits, model: PreTrainedModel) -> PreTrainedModel:
    """A new model with ``edits`` applied, left to right. ``model`` is untouched, bit for bit."""
    edited = cast(PreTrainedModel, copy.deepcopy(model))
    for edit in Edits(edits):
        try:
            _apply_(edit, edited)
        except EditError as error:
            named = error.message.startswith(edit.text)
            context = "" if named else f"{edit.text}: "
            raise EditError(f"{context}{error.message}", error.hint) from None
    if (origin := provenance_of(model)) is not None:
        attach(edited, origin.with_edits(edit.text for edit in Edits(edits)))
    return edited


def check_sharing(layers: set[int], sharing: tuple[int, ...], remedy: str) -> None:
    """Refuse to edit some of several layers that are the same weights."""
    groups = {sharing[layer] for layer in layers}
    others = [i for i, first in enumerate(sharing) if first in groups and i not in layers]
    if others:
        raise EditError(
            f"layers {format_ranges(tuple(sorted(layers)))} and {format_ranges(tuple(others))} "
            "are the same weights and can't be edited apart",
            f"put unshare() first, or {remedy}",
        )


def _apply_(edit: Edit, model: PreTrainedModel) -> None:
    family = adapt(model)
    match edit:
        case DepthEdit():
            family.arrange_(new_order(edit, family.shape.n_layers, family.depth_rules))
        case Reinit():
            _reinitialise_(edit, family)
        case Disable():
            _disable_(edit, family)
        case Randomize():
            weights.randomise_(model, edit.seed)
        case Unshare():
            family.unshare_()
        case _:
            raise EditError(f"no way to apply a {type(edit).__name__}")


def _reinitialise_(edit: Reinit, family: Family) -> None:
    layers = set(edit.layers_in(family.shape.n_layers))
    check_sharing(layers, family.sharing, "re-initialise all of them")
    for layer in sorted({family.sharing[i] for i in layers}):
        weights.reinitialise_(family, layer, edit)


def _disable_(edit: Disable, family: Family) -> None:
    heads = edit.heads_in(family.shape.n_layers, family.shape.n_heads)
    for number in {head.head for head in heads}:
        layers = {head.layer for head in heads if head.head == number}
        check_sharing(layers, family.sharing, f"disable(*.{number})")
    for head in heads:
        weights.disable_(family, head, edit)
