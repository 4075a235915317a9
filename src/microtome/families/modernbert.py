"""ModernBERT: pre-norm blocks, fused projections, rotary positions, sliding windows."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.models.modernbert.modeling_modernbert import apply_rotary_pos_emb

from microtome.families.anatomy import Part
from microtome.families.head_kinds import Reads
from microtome.families.rotary import PreNormed

SLIDING = "sliding_attention"


class ModernBert(PreNormed):
    """ModernBERT: query, key, value are slices of ``Wqkv``; a layer's type moves with it."""

    norms = ("attn_norm", "mlp_norm")  # the first one is an identity in layer 0
    last_norm = "final_norm"
    uses_segments = False
    keys_are_linear = False  # rotary

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__(model)
        width = self.config.hidden_size
        self.parts = (
            Part("query", "attn.Wqkv", (0, width)),
            Part("key", "attn.Wqkv", (width, 2 * width)),
            Part("value", "attn.Wqkv", (2 * width, 3 * width)),
            Part("attention_output", "attn.Wo"),
            Part("intermediate", "mlp.Wi"),  # input and gate together
            Part("output", "mlp.Wo"),
        )

    @property
    def layers(self) -> list[Any]:
        """The blocks."""
        return list(self.body.layers)

    @property
    def layers_path(self) -> str:
        """``model.layers``, or without the prefix in a headless model."""
        return "layers" if self.model is self.body else "model.layers"

    def arrange_(self, order: tuple[int, ...]) -> None:
        """The types travel with their layers in the config: loading builds the layers from it."""
        types = list(self.config.layer_types)
        super().arrange_(order)
        self.config.layer_types = [types[source] for source in order]

    def embed(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        """Words only: positions come in by rotation, segments don't exist."""
        states: Tensor = self.body.embeddings(ids)
        return states

    def project(
        self, index: int, states: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Norm first, then one fused projection, then the rotation of the layer's type."""
        layer = self.layers[index]
        fused = layer.attn.Wqkv(self.attention_input(index, states))
        heads = fused.view(*fused.shape[:-1], 3, -1, layer.attn.head_dim)  # (..., 3, H, Dh)
        query, key, value = heads.unbind(-3)
        cos, sin = self.body.rotary_emb(states, positions, layer.attention_type)
        query, key = apply_rotary_pos_emb(query, key, cos, sin, unsqueeze_dim=-2)
        return query, key, value

    def project_for_maps(
        self, index: int, states: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The projection is fused: the value comes along."""
        query, key, _ = self.project(index, states, positions)
        return query, key

    def window(self, index: int) -> int | None:
        """Sliding layers see half the config's ``local_attention`` on either side, inclusive."""
        sliding = self.layers[index].attention_type == SLIDING
        return int(self.config.sliding_window) if sliding else None

    @property
    def attention_dropout(self) -> float:
        """From the config."""
        return float(self.config.attention_dropout)

    def attention_residual(self, index: int, states: Tensor, projected: Tensor) -> Tensor:
        """Pre-norm: the residual is plain."""
        closed: Tensor = states + self.layers[index].attn.out_drop(projected)
        return closed

    def mlm_features(self, states: Tensor) -> Tensor:
        """Dense, activation, norm."""
        features: Tensor = self.model.head(states)
        return features

    def mlm_norm(self) -> nn.LayerNorm:
        """The norm that makes the features."""
        norm: nn.LayerNorm = self.model.head.norm
        return norm

    def mlm_decoder(self) -> nn.Linear:
        """Tied to the word embeddings."""
        decoder: nn.Linear = self.model.decoder
        return decoder

    @property
    def classifier_reads(self) -> Reads:
        """By the first token or by the mean, as the config says."""
        return "mean" if self.config.classifier_pooling == "mean" else "first"

    def classify(self, pooled: Tensor) -> Tensor:
        """The prediction head takes the place of BERT's pooler."""
        logits: Tensor = self.model.classifier(self.model.drop(self.model.head(pooled)))
        return logits

    def answer(self, states: Tensor) -> Tensor:
        """The same head on every token."""
        return self.classify(states)

    def tag(self, states: Tensor) -> Tensor:
        """The same head on every token."""
        return self.classify(states)


ADAPTER = ModernBert
