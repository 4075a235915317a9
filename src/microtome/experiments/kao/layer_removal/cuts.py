"""Which cuts are tried: blocks of neighbouring layers, and all pairs where they are few; no torch.

The list depends on nothing but the number of layers, so the best of it can be picked on some rows
and scored on others.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from microtome.edits import parse
from microtome.edits.depth import DepthRules, new_order
from microtome.errors import EditError
from microtome.values import format_ranges

STRATEGIES = ("each", "top", "bottom")
MOST_LAYERS_FOR_PAIRS = 8  # of more layers, all pairs would take longer than everything else


@dataclass(frozen=True)
class Cut:
    """Layers that are removed, the edit that removes them, and the order that is left.

    ``order`` is empty where the family refuses the cut; ``refusal`` says why.
    """

    removed: tuple[int, ...]
    edit: str
    order: tuple[int, ...] = ()
    refusal: str = ""

    @property
    def name(self) -> str:
        """The removed layers: 3, 2-5, 1,4."""
        return format_ranges(self.removed)


def all_cuts(n_layers: int, rules: DepthRules) -> list[Cut]:
    """Every cut that is tried on a model, by the layers that it removes."""
    blocks = [
        tuple(range(first, last + 1))
        for first in range(n_layers)
        for last in range(first, n_layers)
        if last - first + 1 < n_layers or n_layers == 1
    ]
    pairs = combinations(range(n_layers), 2) if 2 < n_layers <= MOST_LAYERS_FOR_PAIRS else ()
    return [_cut(removed, n_layers, rules) for removed in dict.fromkeys([*blocks, *pairs])]


def cuts_of(strategy: str, n_layers: int, rules: DepthRules) -> dict[str, Cut]:
    """The cuts of one way of removing, by their names in rows: ``3``, ``top 2``, ``bottom 1``."""
    if strategy == "each":
        return {str(layer): _cut((layer,), n_layers, rules) for layer in range(n_layers)}
    named = {}
    for count in range(1, n_layers):
        first = n_layers - count if strategy == "top" else 0
        removed = tuple(range(first, first + count))
        named[f"{strategy} {count}"] = _cut(removed, n_layers, rules, by_kept=True)
    return named


def _cut(
    removed: tuple[int, ...], n_layers: int, rules: DepthRules, *, by_kept: bool = False
) -> Cut:
    kept = tuple(layer for layer in range(n_layers) if layer not in removed)
    text = f"keep({format_ranges(kept)})" if by_kept else f"remove({format_ranges(removed)})"
    edit = parse(text)
    try:
        (step,) = edit
        order = new_order(step, n_layers, rules)  # type: ignore[arg-type]  # a depth edit
    except EditError as error:  # ModernBERT's layer 0 has to stay; so has an only layer
        why = "; ".join(part for part in (error.message, error.hint) if part)
        return Cut(removed, edit.text, (), why)
    return Cut(removed, edit.text, order)
