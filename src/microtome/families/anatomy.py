"""What a model is made of, under one set of names: sizes and projections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

# A part → the tensor's name in a file (with a place for the layer's number), and which of how many
# parts fused there it is.
Published = Mapping[str, tuple[str, int, int]]

# What every family has; a gated feed-forward may have one more, ``gate``.
PART_NAMES = ("query", "key", "value", "attention_output", "intermediate", "output")
# Some families project positions, too: ``position_query`` and ``position_key``. A head's scores are
# all equal where its rows of these are 0.
QUERY_NAMES = ("query", "position_query")


@dataclass(frozen=True)
class Shape:
    """A model's sizes, under one set of names for all families."""

    n_layers: int
    n_heads: int
    width: int
    inner: int
    vocabulary: int
    embedding_width: int
    n_positions: int

    @property
    def head_width(self) -> int:
        """The width of one head's query, key and value."""
        return self.width // self.n_heads


@dataclass(frozen=True)
class Part:
    """One of a layer's projections: the module that holds it, and its rows there."""

    name: str
    path: str
    rows: tuple[int, int] | None = None  # fused projections hold several parts in one matrix

    def weight(self, layer: nn.Module) -> Tensor:
        """The part's weight (out, in) as a view: writing to it writes to the model."""
        return self._own(layer.get_submodule(self.path).get_parameter("weight"))

    def bias(self, layer: nn.Module) -> Tensor | None:
        """The part's bias (out,) as a view, or None where the family has none."""
        module = layer.get_submodule(self.path)
        return None if module.bias is None else self._own(module.get_parameter("bias"))

    def _own(self, parameter: nn.Parameter) -> Tensor:
        values = parameter.detach()
        return values if self.rows is None else values[self.rows[0] : self.rows[1]]


def fused(tensor: str, *parts: str) -> Published:
    """An entry of ``Family.published``: these parts are one tensor, one after the other."""
    return {part: (tensor, place, len(parts)) for place, part in enumerate(parts)}


def split_heads(values: Tensor, head_width: int) -> Tensor:
    """(..., H·Dh) → (..., H, Dh)."""
    return values.reshape(*values.shape[:-1], -1, head_width)
