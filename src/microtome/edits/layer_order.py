"""Which layers a depth edit leaves, under the rules of one model."""

from __future__ import annotations

from dataclasses import dataclass

from microtome.edits.depth import DepthEdit
from microtome.errors import EditError

MOST_LAYERS = 256  # deeper edits are refused: a slip or a bomb, not a model


@dataclass(frozen=True)
class DepthRules:
    """What a depth edit may do to a model. The defaults hold for layers that are free and alike."""

    shared: bool = False  # one set of weights applied at every depth: only the count can change
    first_copied: int = 0  # layers below this one are built differently: they stay first and single
    refusal: str = ""  # why no depth edit is possible at all


def new_order(edit: DepthEdit, n_layers: int, rules: DepthRules) -> tuple[int, ...]:
    """The source layer of every new layer; shared layers are all layer 0, applied again.

    new_order(parse("keep(0,2)").edits[0], 4, DepthRules())   →   (0, 2)
    """
    if rules.refusal:
        raise EditError(rules.refusal, "put unshare() first")
    if rules.shared:
        return (0,) * edit.count(n_layers)
    order = edit.order(n_layers, first_copied=rules.first_copied)
    if len(order) > MOST_LAYERS:
        raise EditError(
            f"{edit} would give {len(order)} layers", f"at most {MOST_LAYERS} are possible"
        )
    return order
