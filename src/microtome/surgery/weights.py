"""Writing weights in place: fresh ones, and zeros where a head is disabled."""

from __future__ import annotations

import copy
import hashlib
import math

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from microtome.edits import Disable, Reinit
from microtome.families.seam import Family
from microtome.values import Head

CUT = 2.0  # Singh et al., section 4.3: the normal is cut at two standard deviations


def reinitialise_(family: Family, layer: int, edit: Reinit) -> None:
    """Draw the six projections of one layer afresh; with ``parts="all"`` reset biases and norms."""
    block = family.layers[layer]
    for part in family.parts:
        truncated_normal_(part.weight(block), edit.std, stream(edit.seed, layer, part.name))
    if edit.parts == "all":
        reset_(family, block)


def reset_(family: Family, block: nn.Module) -> None:
    """Biases to 0, norms to the identity."""
    for part in family.parts:
        if (bias := part.bias(block)) is not None:
            bias.zero_()
    for path in family.norms:
        norm = block.get_submodule(path)
        if isinstance(norm, nn.LayerNorm):  # ModernBERT's layer 0 has none
            norm.weight.detach().fill_(1.0)
            if norm.bias is not None:
                norm.bias.detach().zero_()


def disable_(family: Family, head: Head, edit: Disable) -> None:
    """Disable one head: zero queries score every key alike; zero columns silence its output."""
    block, rows = family.layers[head.layer], family.head_rows(head.head)
    if edit.how == "zero":
        family.part("attention_output").weight(block)[:, rows] = 0.0
        return
    query = family.part("query")
    query.weight(block)[rows] = 0.0
    if (bias := query.bias(block)) is not None:
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
