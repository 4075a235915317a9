"""How a model's layers are stacked, known from its config alone; no torch here.

Planning asks how many layers there are, which of them share weights, and how they may be copied or
removed. None of that needs the weights, or the library that would load them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from microtome.edits.depth import DepthRules


@dataclass(frozen=True)
class LayerStack:
    """The layers of one model.

    ``n_groups`` is the number of different sets of weights where a family shares them among layers
    (ALBERT), None where every layer has its own. Layers below ``first_copied`` are built
    differently and must stay first and single (ModernBERT's layer 0).
    """

    n_layers: int
    n_groups: int | None = None
    first_copied: int = 0

    def group_of(self, layer: int) -> int:
        """The set of weights applied at ``layer``, by transformers' own rule."""
        return layer if self.n_groups is None else int(layer / (self.n_layers / self.n_groups))

    @cached_property
    def sharing(self) -> tuple[int, ...]:
        """For every layer, the first layer with the same weights; itself unless shared."""
        groups = [self.group_of(layer) for layer in range(self.n_layers)]
        return tuple(groups.index(group) for group in groups)

    @property
    def is_shared(self) -> bool:
        """Whether any two layers have the same weights."""
        return len(set(self.sharing)) < self.n_layers

    @property
    def rules(self) -> DepthRules:
        """One group: only the count can change. A group per layer: free. Between: refused."""
        if self.n_groups is None or self.n_groups == self.n_layers:
            return DepthRules(first_copied=self.first_copied)
        if self.n_groups == 1:
            return DepthRules(shared=True)
        return DepthRules(
            refusal=f"this model shares {self.n_groups} groups among {self.n_layers} layers; "
            "changing the depth would move layers to other groups"
        )
