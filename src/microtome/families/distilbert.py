"""DistilBERT: BERT without segments and pooler, under other names."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from microtome.families.anatomy import Part
from microtome.families.seam import Family


class DistilBert(Family):
    """DistilBERT: ``transformer`` holds the layers, and a second copy of their count."""

    parts = (
        Part("query", "attention.q_lin"),
        Part("key", "attention.k_lin"),
        Part("value", "attention.v_lin"),
        Part("attention_output", "attention.out_lin"),
        Part("intermediate", "ffn.lin1"),
        Part("output", "ffn.lin2"),
    )
    norms = ("sa_layer_norm", "output_layer_norm")
    uses_segments = False

    @property
    def layers(self) -> list[Any]:
        """The blocks."""
        return list(self.body.transformer.layer)

    @property
    def layers_path(self) -> str:
        """``distilbert.transformer.layer``, or without the prefix in a headless model."""
        return "transformer.layer" if self.model is self.body else "distilbert.transformer.layer"

    def set_layers_(self, layers: list[nn.Module]) -> None:
        """The transformer keeps the count too."""
        super().set_layers_(layers)
        self.body.transformer.n_layers = len(layers)

    def embed(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        """Words and positions; segments don't exist here and are not looked at."""
        tables = self.body.embeddings
        summed = tables.word_embeddings(ids) + tables.position_embeddings(positions)
        states: Tensor = tables.dropout(tables.LayerNorm(summed))
        return states

    @property
    def attention_dropout(self) -> float:
        """From the config."""
        return float(self.config.attention_dropout)

    def attention_residual(self, index: int, states: Tensor, projected: Tensor) -> Tensor:
        """Post-norm."""
        closed: Tensor = self.layers[index].sa_layer_norm(projected + states)
        return closed

    def feed_forward(self, index: int, states: Tensor) -> Tensor:
        """Post-norm."""
        layer = self.layers[index]
        closed: Tensor = layer.output_layer_norm(layer.ffn.ff_chunk(states) + states)
        return closed

    def mlm_features(self, states: Tensor) -> Tensor:
        """Dense, activation, norm."""
        features: Tensor = self.model.activation(self.model.vocab_transform(states))
        normed: Tensor = self.model.vocab_layer_norm(features)
        return normed

    def mlm_norm(self) -> nn.LayerNorm:
        """The norm that makes the features."""
        norm: nn.LayerNorm = self.model.vocab_layer_norm
        return norm

    def mlm_decoder(self) -> nn.Linear:
        """Its weight is the word embeddings', its bias isn't shared."""
        decoder: nn.Linear = self.model.vocab_projector
        return decoder

    def classify(self, pooled: Tensor) -> Tensor:
        """A dense layer and a ReLU take the place of BERT's pooler."""
        features = nn.functional.relu(self.model.pre_classifier(pooled))
        logits: Tensor = self.model.classifier(self.model.dropout(features))
        return logits

    def answer(self, states: Tensor) -> Tensor:
        """Only here a dropout precedes the answer head."""
        logits: Tensor = self.model.qa_outputs(self.model.dropout(states))
        return logits


ADAPTER = DistilBert
