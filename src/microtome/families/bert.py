"""BERT, and the layer structure that RoBERTa and ELECTRA share with it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers.activations import GELUActivation

from microtome.families.anatomy import Part
from microtome.families.heads import BertPooler


class BertLike(BertPooler):
    """A family whose blocks are built like BERT's; what is around the blocks differs."""

    parts: tuple[Part, ...] = (
        Part("query", "attention.self.query"),
        Part("key", "attention.self.key"),
        Part("value", "attention.self.value"),
        Part("attention_output", "attention.output.dense"),
        Part("intermediate", "intermediate.dense"),
        Part("output", "output.dense"),
    )
    norms = ("attention.output.LayerNorm", "output.LayerNorm")
    position_offset = 0

    @property
    def layers(self) -> list[Any]:
        """The blocks."""
        return list(self.body.encoder.layer)

    @property
    def layers_path(self) -> str:
        """``bert.encoder.layer``, or without the prefix in a headless model."""
        prefix = "" if self.model is self.body else f"{self.model.base_model_prefix}."
        return f"{prefix}encoder.layer"

    def embed(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        """Words, then segments, then positions: summed in transformers' order, to the bit."""
        tables = self.body.embeddings
        summed = tables.word_embeddings(ids) + tables.token_type_embeddings(segments)
        summed = summed + tables.position_embeddings(positions + self.position_offset)
        states: Tensor = tables.dropout(tables.LayerNorm(summed))
        return states

    @property
    def attention_dropout(self) -> float:
        """From the config."""
        return float(self.config.attention_probs_dropout_prob)

    def attention_residual(self, index: int, states: Tensor, projected: Tensor) -> Tensor:
        """Post-norm: the norm closes the residual."""
        block = self.layers[index].attention.output
        closed: Tensor = block.LayerNorm(block.dropout(projected) + states)
        return closed

    def attention_output(self, index: int, states: Tensor, context: Tensor) -> Tensor:
        """Where no gradient is needed, the residual is added in place: the projection is fresh."""
        if self._may_train:
            return super().attention_output(index, states, context)
        block = self.layers[index].attention.output
        closed: Tensor = block.LayerNorm(block.dense(context).add_(states))
        return closed

    def feed_forward(self, index: int, states: Tensor) -> Tensor:
        """Post-norm here too; where no gradient is needed, without fresh memory for every step."""
        layer = self.layers[index]
        inner, outer = layer.intermediate, layer.output
        exact = isinstance(inner.intermediate_act_fn, GELUActivation)
        if self._may_train or not exact:
            return outer(inner(states), states)  # type: ignore[no-any-return]
        raised = torch.ops.aten.gelu_(inner.dense(states))
        closed: Tensor = outer.LayerNorm(outer.dense(raised).add_(states))
        return closed

    @property
    def _may_train(self) -> bool:
        return torch.is_grad_enabled() or bool(self.model.training)


class Bert(BertLike):
    """BERT: pooler before the classifier, MLM head in ``cls.predictions``."""

    def mlm_features(self, states: Tensor) -> Tensor:
        """Dense, activation, norm."""
        features: Tensor = self.model.cls.predictions.transform(states)
        return features

    def mlm_norm(self) -> nn.LayerNorm:
        """The norm that makes the features."""
        norm: nn.LayerNorm = self.model.cls.predictions.transform.LayerNorm
        return norm

    def mlm_decoder(self) -> nn.Linear:
        """Its weight is the word embeddings', its bias isn't shared."""
        decoder: nn.Linear = self.model.cls.predictions.decoder
        return decoder


ADAPTER = Bert
