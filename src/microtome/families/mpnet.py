"""MPNet: BERT's blocks under other names, and one position bias that all layers add to q·k."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PreTrainedModel

from microtome.families.anatomy import Part
from microtome.families.bert import BertLike
from microtome.families.heads import FirstTokenClassifier, LmHead


class MPNet(FirstTokenClassifier, LmHead, BertLike):
    """MPNet: no segments; ``encoder.relative_attention_bias`` belongs to no layer.

    What its code in transformers does that its config doesn't say: the bias has 32 buckets
    whatever ``relative_attention_num_buckets`` is, and positions start after index 1 whatever
    ``pad_token_id`` is.
    """

    parts = (
        Part("query", "attention.attn.q"),
        Part("key", "attention.attn.k"),
        Part("value", "attention.attn.v"),
        Part("attention_output", "attention.attn.o"),
        Part("intermediate", "intermediate.dense"),
        Part("output", "output.dense"),
    )
    norms = ("attention.LayerNorm", "output.LayerNorm")
    uses_segments = False

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__(model)
        self._bias: Tensor | None = None  # (H, L, L) of the longest text so far

    @property
    def position_offset(self) -> int:  # type: ignore[override]
        """The row of the first token."""
        return int(self.body.embeddings.padding_idx) + 1

    @property
    def n_positions(self) -> int:
        """The table less the rows that are never used."""
        return int(self.config.max_position_embeddings) - self.position_offset

    def embed(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        """Words and positions; segments don't exist here and are not looked at."""
        tables = self.body.embeddings
        summed = tables.word_embeddings(ids)
        summed = summed + tables.position_embeddings(positions + self.position_offset)
        states: Tensor = tables.dropout(tables.LayerNorm(summed))
        return states

    def position_scores(
        self, index: int, length: int, query: Tensor, key: Tensor | None
    ) -> Tensor | None:
        """The bias by distance, the same in every layer: a part of that for the longest text."""
        bias = self._bias
        if bias is None or bias.shape[-1] < length or not torch.is_inference_mode_enabled():
            bias = self._bias_of(length)
        if torch.is_inference_mode_enabled():  # elsewhere the weights may change, or need gradients
            self._bias = bias
        return bias[None, :, : query.shape[-2], :length]

    def _bias_of(self, length: int) -> Tensor:
        sizes = torch.empty(1, length, 0, device=self.word_embeddings.device)  # only its shape
        bias: Tensor = self.body.encoder.compute_position_bias(sizes)[0]
        return bias

    def attention_residual(self, index: int, states: Tensor, projected: Tensor) -> Tensor:
        """Post-norm: the norm closes the residual."""
        block = self.layers[index].attention
        closed: Tensor = block.LayerNorm(block.dropout(projected) + states)
        return closed

    def attention_output(self, index: int, states: Tensor, context: Tensor) -> Tensor:
        """Where no gradient is needed, the residual is added in place: the projection is fresh."""
        projected = self.project_output(index, context)
        if self._may_train:
            return self.attention_residual(index, states, projected)
        closed: Tensor = self.layers[index].attention.LayerNorm(projected.add_(states))
        return closed


ADAPTER = MPNet
