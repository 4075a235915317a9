"""RoBERTa, XLM-R and CamemBERT: BERT's blocks, positions that start after the padding token's."""

from __future__ import annotations

from torch import Tensor, nn

from microtome.families.bert import BertLike


class Roberta(BertLike):
    """RoBERTa: no pooler; the classifier has a dense layer instead."""

    uses_segments = False  # one segment type only; tokenizers don't give any

    @property
    def position_offset(self) -> int:  # type: ignore[override]
        """Position 0 is ``pad_token_id + 1``: the first rows of the table are never used."""
        return int(self.config.pad_token_id) + 1

    @property
    def n_positions(self) -> int:
        """The table less the rows that are never used."""
        return int(self.config.max_position_embeddings) - self.position_offset

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

    def classify(self, pooled: Tensor) -> Tensor:
        """The head reads the first of a list of states, hence the extra axis."""
        logits: Tensor = self.model.classifier(pooled[:, None])
        return logits


ADAPTER = Roberta
