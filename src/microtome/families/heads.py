"""What several families put on top of their blocks: BERT's pooler, RoBERTa's heads.

Each class is a piece to inherit from, next to the base that knows the blocks.
"""

from __future__ import annotations

from torch import Tensor, nn

from microtome.families.seam import Family


class BertPooler(Family):
    """A dense layer and a tanh on the first token, and a classifier on top of them."""

    def pool(self, first: Tensor) -> Tensor:
        """The pooler reads the first of a list of states, hence the extra axis."""
        if getattr(self.body, "pooler", None) is None:
            return super().pool(first)
        pooled: Tensor = self.body.pooler(first[:, None])
        return pooled

    def pooler_layer(self) -> nn.Linear:
        """Inside the pooler."""
        if getattr(self.body, "pooler", None) is None:
            return super().pooler_layer()
        layer: nn.Linear = self.body.pooler.dense
        return layer

    def classify(self, pooled: Tensor) -> Tensor:
        """Pooler, dropout, a linear layer."""
        features = self.body.pooler(pooled[:, None])
        logits: Tensor = self.model.classifier(self.model.dropout(features))
        return logits


class FirstTokenClassifier(Family):
    """A classifier with a dense layer of its own instead of a pooler."""

    def classify(self, pooled: Tensor) -> Tensor:
        """The head reads the first of a list of states, hence the extra axis."""
        logits: Tensor = self.model.classifier(pooled[:, None])
        return logits


class LmHead(Family):
    """RoBERTa's masked-LM head, in ``lm_head``."""

    def mlm_features(self, states: Tensor) -> Tensor:
        """Dense, GELU, norm: ``lm_head`` without its decoder."""
        head = self.model.lm_head
        features: Tensor = head.layer_norm(nn.functional.gelu(head.dense(states)))
        return features

    def mlm_norm(self) -> nn.LayerNorm:
        """The norm that makes the features."""
        norm: nn.LayerNorm = self.model.lm_head.layer_norm
        return norm

    def mlm_decoder(self) -> nn.Linear:
        """Its weight is the word embeddings', its bias isn't shared."""
        decoder: nn.Linear = self.model.lm_head.decoder
        return decoder
