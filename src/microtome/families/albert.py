"""ALBERT: one block applied at every depth (or a few groups of blocks), narrow embeddings."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.activations import NewGELUActivation

from microtome.errors import UnsupportedFamily
from microtome.families.anatomy import DepthRules, Part
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
                f"an ALBERT with inner_group_num {self.config.inner_group_num} was given",
                "Microtome knows ALBERT models with one layer per group (inner_group_num 1)",
            )

    @property
    def n_groups(self) -> int:
        """How many different blocks there are."""
        return int(self.config.num_hidden_groups)

    def group_of(self, index: int) -> int:
        """The group applied at layer ``index``, by transformers' own rule."""
        return int(index / (self.config.num_hidden_layers / self.n_groups))

    @property
    def depth_rules(self) -> DepthRules:
        """One group: only the count can change. One group per layer: free. Between: refused."""
        n_layers = self.config.num_hidden_layers
        if self.n_groups == 1:
            return DepthRules(shared=True)
        if self.n_groups == n_layers:
            return DepthRules()
        return DepthRules(
            refusal=f"this ALBERT shares {self.n_groups} groups among {n_layers} layers; "
            "changing the depth would move layers to other groups"
        )

    @property
    def sharing(self) -> tuple[int, ...]:
        """Layers of one group share their weights."""
        groups = [self.group_of(index) for index in range(self.config.num_hidden_layers)]
        return tuple(groups.index(group) for group in groups)

    @property
    def layers(self) -> list[Any]:
        """The block of every depth; the same module wherever a group is shared."""
        groups = self.body.encoder.albert_layer_groups
        return [
            groups[self.group_of(i)].albert_layers[0] for i in range(self.config.num_hidden_layers)
        ]

    @property
    def layers_path(self) -> str:
        """The groups' list."""
        prefix = "" if self.model is self.body else "albert."
        return f"{prefix}encoder.albert_layer_groups"

    def layer_prefix(self, index: int) -> str:
        """Layers of one group have one prefix."""
        return f"{self.layers_path}.{self.group_of(index)}.albert_layers.0"

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
        own: list[nn.Module] = []
        for layer in self.layers:
            own.append(self.copy_of(layer) if any(layer is other for other in own) else layer)
        self.set_layers_(own)

    def embed(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        """As BERT at the embedding width, then up to the blocks' width."""
        own = self.body.embeddings
        summed = own.word_embeddings(ids) + own.token_type_embeddings(segments)
        summed = summed + own.position_embeddings(positions)
        states: Tensor = self.body.encoder.embedding_hidden_mapping_in(
            own.dropout(own.LayerNorm(summed))
        )
        return states

    @property
    def attention_dropout(self) -> float:
        """From the config."""
        return float(self.config.attention_probs_dropout_prob)

    def attention_residual(self, index: int, states: Tensor, projected: Tensor) -> Tensor:
        """Post-norm."""
        own = self.layers[index].attention
        closed: Tensor = own.LayerNorm(states + own.output_dropout(projected))
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
        """Tied to the word embeddings, with a bias of its own."""
        decoder: nn.Linear = self.model.predictions.decoder
        return decoder

    def classify(self, pooled: Tensor) -> Tensor:
        """The pooler is a bare linear layer with its tanh beside it."""
        features = self.body.pooler_activation(self.body.pooler(pooled))
        logits: Tensor = self.model.classifier(self.model.dropout(features))
        return logits

    def pool(self, first: Tensor) -> Tensor:
        """A bare linear layer, and its tanh beside it."""
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
