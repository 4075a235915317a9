"""RoBERTa, XLM-R and CamemBERT: BERT's blocks, positions that start after the padding token's."""

from __future__ import annotations

from microtome.families.bert import BertLike
from microtome.families.heads import FirstTokenClassifier, LmHead


class Roberta(FirstTokenClassifier, LmHead, BertLike):
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


ADAPTER = Roberta
