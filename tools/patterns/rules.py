"""Patterns by rule: three scores of a map and fixed thresholds. The floor for a classifier."""

from __future__ import annotations

import torch
from torch import Tensor

from microtome.observe.patterns.network import PATTERNS

OFFSETS = (-2, -1, 0, 1, 2)
N_STRIPES = 3  # [CLS] and two [SEP]
STRIPE, LINE, INSIDE = 0.45, 0.25, 0.35  # from which score on a structure counts as there


def stripe_score(maps: Tensor) -> Tensor:
    """What the three most attended tokens receive, beyond what they would of uniform attention."""
    length = maps.shape[-1]
    n = min(N_STRIPES, length)
    most = maps.mean(-2).topk(n, dim=-1).values.sum(-1)
    spare = max(1 - n / length, 1e-9)
    return ((most - n / length) / spare).clamp_min(0)


def line_score(maps: Tensor) -> Tensor:
    """The largest mean weight along a line parallel to the main diagonal, up to two tokens away."""
    length = maps.shape[-1]
    lines = [maps.diagonal(o, -2, -1).mean(-1) for o in OFFSETS if abs(o) < length]
    return torch.stack(lines).amax(0)


def block_score(maps: Tensor, same: Tensor, ordinary: Tensor) -> Tensor:
    """How much more than by chance ordinary tokens attend within their own text.

    ``same`` (…, L, L) says which pairs are of one text, ``ordinary`` (…, L) leaves out [CLS] and
    [SEP]. 0: as uniform attention does; 1: never to the other text.
    """
    both = ordinary[..., :, None] & ordinary[..., None, :]
    inside = (maps * (same & both)).sum((-2, -1)) / (maps * both).sum((-2, -1)).clamp_min(1e-9)
    chance = (same & both).sum((-2, -1)) / both.sum((-2, -1)).clamp_min(1)
    return ((inside - chance) / (1 - chance).clamp_min(1e-9)).clamp_min(0)


def by_rule(stripes: Tensor, lines: Tensor, blocks: Tensor) -> Tensor:
    """The class that the scores say, as a place in :data:`PATTERNS`; ``blocks`` 0 for one text."""
    found = torch.full_like(stripes, PATTERNS.index("heterogeneous"), dtype=torch.long)
    found[blocks >= INSIDE] = PATTERNS.index("block")
    found[stripes >= STRIPE] = PATTERNS.index("vertical")
    found[lines >= LINE] = PATTERNS.index("diagonal")
    found[(stripes >= STRIPE) & (lines >= LINE)] = PATTERNS.index("vertical+diagonal")
    return found
