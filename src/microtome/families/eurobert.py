"""EuroBERT: pre-norm blocks with RMS norms, rotary positions, grouped keys, gated feed-forwards.

What surprised in transformers' code:

- A classifier's default pooling is "late": every token goes through the dense layer and the
  classifier, and the mean is of the logits. The last layer is linear, so it is the same as the
  mean of the tokens' features, which is what ``before_mean`` gives.
- The masked-LM head is one matrix (``lm_head``), without a norm, an activation or a bias, and not
  tied to the word embeddings by default.
- There is no dropout but on the attention weights, no pooler, no question-answering class.
- The block is called a decoder layer and takes a cache; ``is_causal`` is False all the same.
"""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn

from microtome.errors import RequestError
from microtome.families.head_kinds import Reads
from microtome.families.rotary import PreNormed, RotaryLike


class EuroBert(PreNormed, RotaryLike):
    """EuroBERT: a head is a query head; those of a group have one key and one value in common."""

    norms = ("input_layernorm", "post_attention_layernorm")
    last_norm = "norm"
    uses_segments = False

    def embed(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        """Words only, and not normed."""
        states: Tensor = self.body.embed_tokens(ids)
        return states

    @property
    def attention_dropout(self) -> float:
        """From the config."""
        return float(self.config.attention_dropout)

    def mlm_features(self, states: Tensor) -> Tensor:
        """The head is a decoder alone: it reads the normed states."""
        return states

    def mlm_norm(self) -> nn.LayerNorm:
        """Refused: there is none."""
        raise RequestError(f"the masked-LM head of {self.name} models has no norm")

    def mlm_decoder(self) -> nn.Linear:
        """A matrix of its own, unless the config ties it."""
        decoder: nn.Linear = self.model.lm_head
        return decoder

    @property
    def classifier_reads(self) -> Reads:
        """The first token, or a mean: of the states, or of what the dense layer makes of them."""
        pooling: str = self.config.classifier_pooling
        return "first" if pooling == "bos" else "mean" if pooling == "mean" else "late"

    def before_mean(self, states: Tensor) -> Tensor:
        """Late pooling: the dense layer and the activation come before the mean."""
        return self._features(states) if self.reads == "late" else states

    def classify(self, pooled: Tensor) -> Tensor:
        """A dense layer, GELU, a linear layer."""
        features = pooled if self.reads == "late" else self._features(pooled)
        return cast(Tensor, self.model.classifier(features))

    def _features(self, states: Tensor) -> Tensor:
        return cast(Tensor, self.model.activation(self.model.dense(states)))


ADAPTER = EuroBert
