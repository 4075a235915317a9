"""ALBERT: one block applied at every depth (or a few groups of blocks), narrow embeddings."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.activations import NewGELUActivation

from microtome.errors import UnsupportedFamily
from microtome.families.anatomy import Part
from microtome.families.seam import Family


class Albert(Family):
    """ALBERT: a layer is a depth position; layers of one group are the same module."""

    parts = (
        Part("query", "attention.query"),
        Part("key", "attention.key"),
        Part("value", "attention.value"),
        Part("attention_output", "attention.dense"),
        Part("intermediate", "ffn"),
        Part("output", "ffn_output"),
    )
    norms = ("attention.LayerNorm", "full_layer_layer_norm")

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__(model)
        if self.config.inner_group_num != 1:
            raise UnsupportedFamily(
                "expected an ALBERT with one layer per group (inner_group_num 1), "
                f"got inner_group_num {self.config.inner_group_num}",
            )

    @property
    def layers(self) -> list[Any]:
        """The block of every depth; the same module wherever a group is shared."""
        groups, stack = self.body.encoder.albert_layer_groups, self.stack
        return [groups[stack.group_of(i)].albert_layers[0] for i in range(stack.n_layers)]

    @property
    def layers_path(self) -> str:
        """The groups' list."""
        prefix = "" if self.model is self.body else "albert."
        return f"{prefix}encoder.albert_layer_groups"

    def layer_prefix(self, index: int) -> str:
        """Layers of one group have one prefix."""
        return f"{self.layers_path}.{self.stack.group_of(index)}.albert_layers.0"

    def arrange_(self, order: tuple[int, ...]) -> None:
        """A shared layer is applied ``len(order)`` times; unshared ones move like BERT's."""
        if self.depth_rules.shared:
            self.config.num_hidden_layers = len(order)
        else:
            super().arrange_(order)

    def set_layers_(self, layers: list[nn.Module]) -> None:
        """One group around each block; a group holds nothing else, so a shell is refilled."""
        old = list(self.body.encoder.albert_layer_groups)
        groups = []
        for index, layer in enumerate(layers):
            group = old[index] if index < len(old) else self.copy_of(old[0])
            group.albert_layers = nn.ModuleList([layer])
            groups.append(group)
        super().set_layers_(groups)
        self.config.num_hidden_groups = len(groups)

    def unshare_(self) -> None:
        """One copy of its block per depth: every depth computes what it did before."""
        separate: list[nn.Module] = []
        for layer in self.layers:
            is_used = any(layer is other for other in separate)
            separate.append(self.copy_of(layer) if is_used else layer)
        self.set_layers_(separate)

    def embed(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        """As BERT at the embedding width, then up to the blocks' width."""
        tables = self.body.embeddings
        summed = tables.word_embeddings(ids) + tables.token_type_embeddings(segments)
        summed = summed + tables.position_embeddings(positions)
        states: Tensor = self.body.encoder.embedding_hidden_mapping_in(
            tables.dropout(tables.LayerNorm(summed))
        )
        return states

    @property
    def attention_dropout(self) -> float:
        """From the config."""
        return float(self.config.attention_probs_dropout_prob)

    def attention_residual(self, index: int, states: Tensor, projected: Tensor) -> Tensor:
        """Post-norm."""
        block = self.layers[index].attention
        closed: Tensor = block.LayerNorm(states + block.output_dropout(projected))
        return closed

    def feed_forward(self, index: int, states: Tensor) -> Tensor:
        """Post-norm; no dropout in this half."""
        layer = self.layers[index]
        inner = (
            fast_gelu_new if isinstance(layer.activation, NewGELUActivation) else layer.activation
        )
        projected = layer.ffn_output(inner(layer.ffn(states)))
        closed: Tensor = layer.full_layer_layer_norm(projected + states)
        return closed

    def tied_features(self, states: Tensor) -> Tensor:
        """Back to the embedding width by the transpose of the way up."""
        features: Tensor = states @ self.body.encoder.embedding_hidden_mapping_in.weight
        return features

    def mlm_features(self, states: Tensor) -> Tensor:
        """Dense to the embedding width, activation, norm."""
        head = self.model.predictions
        features: Tensor = head.LayerNorm(head.activation(head.dense(states)))
        return features

    def mlm_norm(self) -> nn.LayerNorm:
        """The norm that makes the features."""
        norm: nn.LayerNorm = self.model.predictions.LayerNorm
        return norm

    def mlm_decoder(self) -> nn.Linear:
        """Its weight is the word embeddings', its bias isn't shared."""
        decoder: nn.Linear = self.model.predictions.decoder
        return decoder

    def classify(self, pooled: Tensor) -> Tensor:
        """The pooler is a bare linear layer; its tanh is a module apart."""
        features = self.body.pooler_activation(self.body.pooler(pooled))
        logits: Tensor = self.model.classifier(self.model.dropout(features))
        return logits

    def pool(self, first: Tensor) -> Tensor:
        """A bare linear layer; its tanh is a module apart."""
        if self.body.pooler is None:
            return super().pool(first)
        pooled: Tensor = self.body.pooler_activation(self.body.pooler(first))
        return pooled

    def pooler_layer(self) -> nn.Linear:
        """The pooler itself."""
        if self.body.pooler is None:
            return super().pooler_layer()
        layer: nn.Linear = self.body.pooler
        return layer


def fast_gelu_new(values: Tensor) -> Tensor:
    """ALBERT's GELU by tanh, written with a sigmoid: equal to 5e-7, and three times as fast."""
    # 0.5·(1 + tanh u) = sigmoid(2u), u = √(2/π)·(x + 0.044715·x³)
    inner = (values * values).mul(0.044715).add(1.0) * values
    return values * torch.sigmoid(inner * 1.5957691216057308)


ADAPTER = Albert
