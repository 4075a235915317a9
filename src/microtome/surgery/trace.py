"""What edits ought to have done, worked out from the edits alone.

:func:`trace` folds the edits over a model's sizes into the fate of every tensor: kept from which
base layer, drawn afresh, reset, or zero. Nothing here touches a weight, so that the certificate can
hold the edited model against it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Literal

from microtome.edits import Disable, Edit, Edits, Randomize, Reinit, Unshare, Vocabulary
from microtome.edits.depth import DepthEdit, DepthRules, new_order
from microtome.families.seam import Family

Fate = Literal["kept", "drawn", "reset", "zero"]


@dataclass(frozen=True)
class LayerTrace:
    """One layer of the edited model: its base layer, and what became of its tensors.

    Query and attention output are followed head by head, because disabling acts on single heads.
    """

    source: int
    query_weight: tuple[Fate, ...]
    query_bias: tuple[Fate, ...]
    output_columns: tuple[Fate, ...]
    weights: Fate = "kept"  # the other four projections
    rest: Fate = "kept"  # other biases, norms
    std: float | None = None  # of the last re-initialisation

    @property
    def uniform_heads(self) -> tuple[int, ...]:
        """Heads that must attend to all real tokens alike."""
        blank = ("zero", "reset")
        pairs = zip(self.query_weight, self.query_bias, strict=True)
        return tuple(j for j, (w, b) in enumerate(pairs) if w == "zero" and b in blank)


@dataclass(frozen=True)
class Trace:
    """The edited model's layers, and what became of everything outside them.

    It was drawn afresh too (``randomised``), or it has fewer tokens (the last ``vocabulary``).
    """

    layers: tuple[LayerTrace, ...]
    rules: DepthRules
    randomised: bool = False
    vocabulary: Vocabulary | None = None


def trace(edits: Edits, base: Family) -> Trace:
    """The fates that ``edits`` imply for a model like ``base``."""
    n_heads = base.shape.n_heads
    kept = _all("kept", n_heads)
    first = base.sharing
    layers = tuple(LayerTrace(first[i], kept, kept, kept) for i in range(base.shape.n_layers))
    done = Trace(layers, base.depth_rules)
    for edit in edits:
        done = _step(edit, done, n_heads)
    return done


def _step(edit: Edit, before: Trace, n_heads: int) -> Trace:
    layers = before.layers
    match edit:
        case DepthEdit():
            order = new_order(edit, len(layers), before.rules)
            return replace(before, layers=tuple(layers[source] for source in order))
        case Reinit():
            touched = edit.layers_in(len(layers))
            return replace(before, layers=_each(layers, touched, lambda x: _drawn(x, edit)))
        case Disable():
            after = list(layers)
            for head in edit.heads_in(len(layers), n_heads):
                after[head.layer] = _disabled(after[head.layer], head.head, edit.how)
            return replace(before, layers=tuple(after))
        case Randomize():
            every = range(len(layers))
            return replace(before, layers=_each(layers, every, _random), randomised=True)
        case Unshare():
            return replace(before, rules=DepthRules())
        case Vocabulary():
            return replace(before, vocabulary=edit)
        case _:
            raise AssertionError(f"no trace for {edit!r}")


def _all(fate: Fate, n_heads: int) -> tuple[Fate, ...]:
    return tuple(fate for _ in range(n_heads))


def _each(
    layers: tuple[LayerTrace, ...],
    touched: Collection[int],
    change: Callable[[LayerTrace], LayerTrace],
) -> tuple[LayerTrace, ...]:
    return tuple(change(layer) if i in touched else layer for i, layer in enumerate(layers))


def _drawn(layer: LayerTrace, edit: Reinit) -> LayerTrace:
    heads = _all("drawn", len(layer.query_weight))
    fresh = replace(layer, query_weight=heads, output_columns=heads, weights="drawn", std=edit.std)
    if edit.parts == "weights":
        return fresh
    return replace(fresh, query_bias=_all("reset", len(heads)), rest="reset")


def _random(layer: LayerTrace) -> LayerTrace:
    heads = _all("drawn", len(layer.query_weight))
    return replace(
        layer, query_weight=heads, query_bias=heads, output_columns=heads,
        weights="drawn", rest="drawn", std=None,
    )  # fmt: skip


def _disabled(layer: LayerTrace, head: int, how: str) -> LayerTrace:
    def zero(fates: tuple[Fate, ...]) -> tuple[Fate, ...]:
        return (*fates[:head], "zero", *fates[head + 1 :])

    if how == "zero":
        return replace(layer, output_columns=zero(layer.output_columns))
    return replace(layer, query_weight=zero(layer.query_weight), query_bias=zero(layer.query_bias))
