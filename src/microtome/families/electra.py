"""ELECTRA: BERT's blocks, embeddings that may be narrower than the blocks."""

from __future__ import annotations

from torch import Tensor, nn

from microtome.families.bert import BertLike
from microtome.families.heads import FirstTokenClassifier


class Electra(FirstTokenClassifier, BertLike):
    """ELECTRA: generators have an MLM head, discriminators have none."""

    def embed(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        """As BERT, then up to the blocks' width where the two differ."""
        states = super().embed(ids, positions, segments)
        if hasattr(self.body, "embeddings_project"):
            states = self.body.embeddings_project(states)
        return states

    def tied_features(self, states: Tensor) -> Tensor:
        """Back to the embedding width by the transpose of the way up."""
        if hasattr(self.body, "embeddings_project"):
            states = states @ self.body.embeddings_project.weight
        return states

    def mlm_features(self, states: Tensor) -> Tensor:
        """Dense to the embedding width, GELU, norm."""
        features: Tensor = self.model.generator_predictions(states)
        return features

    def mlm_norm(self) -> nn.LayerNorm:
        """The norm that makes the features."""
        norm: nn.LayerNorm = self.model.generator_predictions.LayerNorm
        return norm

    def mlm_decoder(self) -> nn.Linear:
        """Its weight is the word embeddings', its bias isn't shared."""
        decoder: nn.Linear = self.model.generator_lm_head
        return decoder


ADAPTER = Electra
