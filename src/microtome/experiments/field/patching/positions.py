"""Groups of positions of a pair, by what is there and where that is from the changed tokens."""

from __future__ import annotations

from collections.abc import Mapping

from microtome.experiments.field.patching.pairs import Pair
from microtome.experiments.field.patching.plan import (
    AFTER,
    BEFORE,
    BETWEEN,
    CHANGED,
    FIRST,
    MASKED,
    SEPARATORS,
)
from microtome.experiments.field.patching.states import Patch


def group_of(pair: Pair, position: int) -> str:
    """The first of these that a position is: changed, masked, first, a separator, or by place."""
    changed = pair.changed
    if position in changed:
        return CHANGED
    if position == pair.masked:
        return MASKED
    if position == 0:
        return FIRST
    if pair.clean.special_tokens_mask[position]:
        return SEPARATORS
    if position < changed[0]:
        return BEFORE
    return AFTER if position > changed[-1] else BETWEEN


def group_patches(number: int, pair: Pair) -> Mapping[str, list[Patch]]:
    """The patches of pair ``number``, by group: each position; the changed tokens together."""
    groups = {CHANGED: [Patch(number, tuple(pair.changed.tolist()))]}
    for patch in token_patches(number, pair):
        if (group := group_of(pair, *patch.positions)) != CHANGED:
            groups.setdefault(group, []).append(patch)
    return groups


def token_patches(number: int, pair: Pair) -> list[Patch]:
    """One patch for every position of pair ``number``, in order."""
    return [Patch(number, (position,)) for position in range(len(pair.clean))]
