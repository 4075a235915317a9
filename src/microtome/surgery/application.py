"""Apply edits to a model: a new model comes out, the one handed in stays as it was.

Below it the in-place work on single weights: fresh ones, and zeros where a head is disabled.
"""

from __future__ import annotations

import copy
import hashlib
import math
from typing import cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from microtome.edits import Disable, Edit, Edits, Randomize, Reinit, Unshare, Vocabulary
from microtome.edits.depth import DepthEdit, new_order
from microtome.errors import EditError
from microtome.families import adapt
from microtome.families.anatomy import QUERY_NAMES
from microtome.families.seam import Family
from microtome.models.provenance import attach, provenance_of
from microtome.surgery.vocabulary import shrink_vocabulary_
from microtome.values import Head, format_ranges

CUT = 2.0  # Singh et al., section 4.3: the normal is cut at two standard deviations


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
    if (origin := provenance_of(edited)) is not None:
        attach(edited, origin.with_edits(edit.identity for edit in Edits(edits)))
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
            randomise_(model, edit.seed)
        case Unshare():
            family.unshare_()
        case Vocabulary():
            shrink_vocabulary_(edit, family)
        case _:
            raise EditError(f"no way to apply a {type(edit).__name__}")


def _reinitialise_(edit: Reinit, family: Family) -> None:
    """Draw the projections of some layers afresh; with ``parts="all"`` the rest is reset."""
    layers = set(edit.layers_in(family.shape.n_layers))
    check_sharing(layers, family.sharing, "re-initialise all of them")
    for layer in sorted({family.sharing[i] for i in layers}):
        block = family.layers[layer]
        for part in family.parts:
            truncated_normal_(part.weight(block), edit.std, stream(edit.seed, layer, part.name))
        if edit.parts == "all":
            _reset_(family, block)


def _disable_(edit: Disable, family: Family) -> None:
    heads = edit.heads_in(family.shape.n_layers, family.shape.n_heads)
    if edit.how == "uniform" and not family.facts.has_uniform_heads:
        raise EditError(
            f"{family.name} adds a position bias that all layers share to the scores, so no weights"
            " of a head make its attention uniform",
            "disable it with how=zero; sweeps compute uniform attention without a checkpoint",
        )
    for number in {head.head for head in heads}:
        layers = {head.layer for head in heads if head.head == number}
        check_sharing(layers, family.sharing, f"disable(*.{number})")
    for head in heads:
        disable_(family, head, edit)


def _reset_(family: Family, block: nn.Module) -> None:
    """Biases to 0, norms to the identity."""
    for part in family.parts:
        if (bias := part.bias(block)) is not None:
            bias.zero_()
    for path in family.norms:
        # ModernBERT's layer 0 has none (an identity), an RMS norm has no bias.
        for name, value in block.get_submodule(path).named_parameters():
            value.detach().fill_(1.0 if name == "weight" else 0.0)


def disable_(family: Family, head: Head, edit: Disable) -> None:
    """Disable one head: zero queries score every key alike; zero columns silence its output."""
    block, rows = family.layers[head.layer], family.head_rows(head.head)
    if edit.how == "zero":
        family.part("attention_output").weight(block)[:, rows] = 0.0
        return
    for part in (part for part in family.parts if part.name in QUERY_NAMES):
        part.weight(block)[rows] = 0.0
        if (bias := part.bias(block)) is not None:
            bias[rows] = 0.0


def randomise_(model: PreTrainedModel, seed: int) -> None:
    """Overwrite every parameter with what the model's initialiser gives.

    A new model is built for it: after ``from_pretrained`` parameters are marked as initialised, and
    ``_init_weights`` on them would change nothing.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = type(model)(copy.deepcopy(model.config))
    drawn = dict(fresh.named_parameters())
    for name, parameter in model.named_parameters():
        parameter.detach().copy_(drawn[name])


def stream(seed: int, layer: int, part: str) -> torch.Generator:
    """One random stream per (seed, layer, part): more layers never change another layer's draw."""
    digest = hashlib.sha256(f"reinit/{seed}/{layer}/{part}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def truncated_normal_(values: Tensor, std: float, generator: torch.Generator) -> None:
    """Fill with a normal of scale ``std``, cut at ±2 ``std``, by inverting its distribution."""
    edge = 0.5 * (1.0 + math.erf(-CUT / math.sqrt(2.0)))  # Φ(−2)
    uniform = torch.rand(values.shape, generator=generator, dtype=torch.float64)
    uniform.mul_(1.0 - 2.0 * edge).add_(edge)
    standard = torch.erfinv(uniform.mul_(2.0).sub_(1.0)).mul_(math.sqrt(2.0))
    values.copy_(standard.clamp_(-CUT, CUT).mul_(std))
