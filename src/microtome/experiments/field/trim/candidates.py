"""Which layers may be kept: the candidates of every size, before anything is measured; no torch.

The list depends on nothing but the number of layers. Where a model has few layers it holds every
subset; else the shapes that people cut to, to which a greedy search adds its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from microtome.edits import parse
from microtome.edits.depth import DepthRules, new_order
from microtome.errors import EditError
from microtome.values import format_ranges

FEW_LAYERS = 6  # so many have 62 proper subsets: all of them are tried
MOST_HEALED = 5  # sizes that get a share of the time


@dataclass(frozen=True)
class Candidate:
    """An order of layers, and the edit that makes it."""

    order: tuple[int, ...]
    edit: str

    @property
    def layers(self) -> int:
        """How many it has."""
        return len(self.order)


def deeper_sizes(n_layers: int) -> tuple[int, ...]:
    """One layer more, and half as many again."""
    return tuple(dict.fromkeys((n_layers + 1, n_layers + (n_layers + 1) // 2)))


def candidates(n_layers: int, rules: DepthRules, sizes: Sequence[int]) -> list[Candidate]:
    """The candidates of some sizes, the fewest layers first.

    A model with shared layers has one of every size: it applies its layer less often.
    """
    kept: list[tuple[int, ...]] = []
    for size in sorted(sizes):
        if size > n_layers:
            continue
        if rules.shared:
            kept.append(tuple(range(size)))
        elif n_layers <= FEW_LAYERS:
            kept += combinations(range(n_layers), size)
        else:
            kept += shapes(n_layers, size)
    found = [one for layers in kept if (one := keeping(layers, n_layers, rules))]
    return found + [one for one in _deeper(n_layers, rules) if one.layers in sizes]


def shapes(n_layers: int, size: int) -> list[tuple[int, ...]]:
    """The usual ways to keep ``size`` of ``n_layers``: an end, both ends, or evenly spaced.

    shapes(12, 4)   →   0-3, 8-11, 0-1 and 10-11, 0-2 and 11, then 0 4 7 11, 0 3 6 9, 2 5 8 11
    """
    front, last = (size + 1) // 2, n_layers - 1
    ends = [*range(front), *range(n_layers - size + front, n_layers)]
    spread = [round(i * last / max(1, size - 1)) for i in range(size)] if size > 1 else [last]
    ways = (
        range(size),
        range(n_layers - size, n_layers),
        ends,
        [*range(size - 1), last],
        spread,
        [i * n_layers // size for i in range(size)],
        [(i + 1) * n_layers // size - 1 for i in range(size)],
    )
    return list(dict.fromkeys(tuple(way) for way in ways))


def without_one(order: Sequence[int], n_layers: int, rules: DepthRules) -> list[Candidate]:
    """What a greedy search tries next: ``order`` without each of its layers."""
    shorter = (tuple(o for o in order if o != layer) for layer in order)
    return [one for layers in shorter if layers and (one := keeping(layers, n_layers, rules))]


def keeping(layers: Sequence[int], n_layers: int, rules: DepthRules) -> Candidate | None:
    """The candidate that keeps these layers; None where the family refuses it."""
    return _made(f"keep({format_ranges(layers)})", n_layers, rules)


def healed_sizes(sizes: Sequence[int], asked: Sequence[int] | None) -> list[int]:
    """The sizes that are trained: those asked for, else at most five, spread over all."""
    if asked is not None:
        return [size for size in sizes if size in asked]
    if len(sizes) <= MOST_HEALED:
        return list(sizes)
    step = (len(sizes) - 1) / (MOST_HEALED - 1)
    return [sizes[round(i * step)] for i in range(MOST_HEALED)]


def _deeper(n_layers: int, rules: DepthRules) -> list[Candidate]:
    """One layer more, whichever is duplicated; and half as many again by the papers' rule."""
    singles = [] if rules.shared else [f"duplicate({layer})" for layer in range(n_layers)]
    rule = [f"extend({size})" for size in deeper_sizes(n_layers)]
    made = {one.order: one for text in (*singles, *rule) if (one := _made(text, n_layers, rules))}
    return [one for one in made.values() if one.layers > n_layers]


def _made(text: str, n_layers: int, rules: DepthRules) -> Candidate | None:
    (step,) = parse(text)
    try:
        order = new_order(step, n_layers, rules)  # type: ignore[arg-type]  # a depth edit
    except EditError:  # ModernBERT's layer 0 has to stay
        return None
    return Candidate(order, step.text)
