"""What families with rotary positions share: separate projections, one rotation, gated blocks.

Two bases to build on. :class:`RotaryLike` has the projections: query and key are rotated by their
position, and several query heads may share one key and value head. :class:`PreNormed` has blocks
whose norm comes before each half instead of after it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from transformers import PreTrainedModel

from microtome.errors import UnsupportedFamily
from microtome.families.anatomy import Part, split_heads
from microtome.families.seam import Family

ATTENTION_PARTS = (
    Part("query", "self_attn.q_proj"),
    Part("key", "self_attn.k_proj"),
    Part("value", "self_attn.v_proj"),
    Part("attention_output", "self_attn.o_proj"),
)
# ModernBERT's ``Wi`` holds the two of them in one matrix; here the gate is a part of its own.
GATED_PARTS = (
    Part("intermediate", "mlp.up_proj"),
    Part("gate", "mlp.gate_proj"),
    Part("output", "mlp.down_proj"),
)


class RotaryLike(Family):
    """A family whose queries and keys are rotated by position, from projections of their own."""

    parts: tuple[Part, ...] = (*ATTENTION_PARTS, *GATED_PARTS)
    keys_are_linear = False

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__(model)
        kind = self.body.rotary_emb.rope_type
        if kind == "longrope":
            # It picks its frequencies by the longest text of a batch, so a text's states would
            # depend on its neighbours.
            raise UnsupportedFamily(
                f"this {self.name} model has rotary positions of type {kind!r}, whose frequencies "
                "depend on the batch",
                "supported: default, linear, dynamic, yarn, llama3",
            )

    @property
    def layers(self) -> list[Any]:
        """The blocks."""
        return list(self.body.layers)

    @property
    def layers_path(self) -> str:
        """``nomic_bert.layers``, or without the prefix in a headless model."""
        prefix = "" if self.model is self.body else f"{self.model.base_model_prefix}."
        return f"{prefix}layers"

    def project(
        self, index: int, states: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value per query head: a group's are repeated for each of its heads."""
        inputs = self.attention_input(index, states)
        query, key = self._rotated_pair(index, inputs, positions)
        value = split_heads(self.module(index, "value")(inputs), self.shape.head_width)
        return query, key, _per_query_head(value, query.shape[-2])

    def project_for_maps(
        self, index: int, states: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Query and key alone."""
        return self._rotated_pair(index, self.attention_input(index, states), positions)

    def _rotated_pair(self, index: int, inputs: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        query, key = super().project_for_maps(index, inputs, positions)
        cos, sin = (part.unsqueeze(-2) for part in self.body.rotary_emb(inputs, positions))
        # A query of zeros stays zero when it is rotated: a disabled head is uniform here, too.
        query, key = _rotated(query, cos, sin), _rotated(key, cos, sin)
        return query, _per_query_head(key, query.shape[-2])


class PreNormed(Family):
    """A family that norms what a half of a block reads, and norms the states once at the end.

    ``norms`` are the attention's norm and the feed-forward's, attributes of a block.
    """

    last_norm: ClassVar[str]  # the body's norm after the last layer

    def attention_input(self, index: int, states: Tensor) -> Tensor:
        """Normed."""
        normed: Tensor = getattr(self.layers[index], self.norms[0])(states)
        return normed

    def attention_residual(self, index: int, states: Tensor, projected: Tensor) -> Tensor:
        """The residual is plain."""
        return states + projected

    def feed_forward(self, index: int, states: Tensor) -> Tensor:
        """The norm is inside the residual."""
        layer = self.layers[index]
        closed: Tensor = states + layer.mlp(getattr(layer, self.norms[1])(states))
        return closed

    def final_norm(self, states: Tensor) -> Tensor:
        """Inner states are not normed; any head reads them through this."""
        normed: Tensor = getattr(self.body, self.last_norm)(states)
        return normed


def _rotated(values: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Each pair (i, i + Dh/2) turned by its angle: (..., H, Dh)."""
    first, second = values.chunk(2, dim=-1)
    return values * cos + torch.cat((-second, first), dim=-1) * sin


def _per_query_head(values: Tensor, n_heads: int) -> Tensor:
    """(..., K, Dh) → (..., H, Dh): head j of a query reads group j // (H / K)."""
    n_groups = values.shape[-2]
    return values if n_groups == n_heads else values.repeat_interleave(n_heads // n_groups, -2)
