"""NomicBERT, gte and jina-embeddings-v3: BERT's order of steps with rotary positions.

What surprised in transformers' code:

- Files aren't named like modules. ``save_pretrained`` writes the names of the published
  checkpoints (``encoder.layers.0.attn.Wqkv``, ``fc11``, ``emb_ln``) and fuses query, key and value
  again, so a checkpoint's tensors are other ones than the model's: see ``published``.
- The activation of NomicBERT's masked-LM head is the blocks' ``hidden_act``: SiLU, not GELU.
- NomicBERT and gte have no question-answering class, nor a pooler in the headless class.
- gte-en-v1.5 has no segment table at all (``type_vocab_size`` 0), other gte have one row. Of its
  feed-forward only ``down_proj`` has a bias, and dropout is also on the gated activation.
- jina v3's feed-forward isn't gated, its encoder's prefix is ``roberta``, and positions start at 0,
  not after the padding index as in RoBERTa. Its masked-LM class makes the head before the encoder,
  so ``named_parameters`` gives the tied matrix under the head's name.
- The LoRA adapters of the published jina v3, one per kind of task, aren't in the class at all: it
  computes the base without any adapter. A file that holds them has tensors without a place in the
  model, and loading refuses it by their names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from torch import Tensor, nn
from transformers import PreTrainedModel

from microtome.families.anatomy import Part, Published, fused
from microtome.families.heads import BertPooler, FirstTokenClassifier, LmHead
from microtome.families.rotary import ATTENTION_PARTS, RotaryLike
from microtome.families.seam import Family


class RotaryPostNorm(RotaryLike):
    """Blocks with BERT's order of steps (norm last) and no position table."""

    norms = ("post_attention_layernorm", "post_mlp_layernorm")

    def embed(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        """Words and segments; positions come in by rotation. gte may have no segment table."""
        tables = self.body.embeddings
        summed = tables.word_embeddings(ids)
        if tables.token_type_embeddings is not None:
            summed = summed + tables.token_type_embeddings(segments)
        states: Tensor = tables.dropout(tables.LayerNorm(summed))
        return states

    @property
    def attention_dropout(self) -> float:
        """From the config."""
        return float(self.config.attention_probs_dropout_prob)

    def attention_residual(self, index: int, states: Tensor, projected: Tensor) -> Tensor:
        """Post-norm: the norm closes the residual."""
        layer = self.layers[index]
        closed: Tensor = layer.post_attention_layernorm(
            states + layer.post_attention_dropout(projected)
        )
        return closed

    def feed_forward(self, index: int, states: Tensor) -> Tensor:
        """Post-norm here too; the gate is inside ``mlp``."""
        layer = self.layers[index]
        closed: Tensor = layer.post_mlp_layernorm(
            states + layer.post_mlp_dropout(layer.mlp(states))
        )
        return closed


class NomicBert(BertPooler, RotaryPostNorm):
    """NomicBERT: no biases in the blocks; BERT's heads, its MLM head in ``cls.predictions``."""

    published: ClassVar[Published] = {
        **fused("encoder.layers.{}.attn.Wqkv", "query", "key", "value"),
        **fused("encoder.layers.{}.attn.out_proj", "attention_output"),
        **fused("encoder.layers.{}.mlp.fc11", "intermediate"),
        **fused("encoder.layers.{}.mlp.fc12", "gate"),
        **fused("encoder.layers.{}.mlp.fc2", "output"),
    }

    def mlm_features(self, states: Tensor) -> Tensor:
        """Dense, activation, norm."""
        features: Tensor = self.model.cls.predictions.transform(states)
        return features

    def mlm_norm(self) -> nn.LayerNorm:
        """The norm that makes the features."""
        norm: nn.LayerNorm = self.model.cls.predictions.transform.layer_norm
        return norm

    def mlm_decoder(self) -> nn.Linear:
        """Its weight is the word embeddings', its bias isn't shared."""
        decoder: nn.Linear = self.model.cls.predictions.decoder
        return decoder


class Gte(BertPooler, LmHead, RotaryPostNorm):
    """gte: one segment type at most."""

    uses_segments = False
    published: ClassVar[Published] = {
        **fused("encoder.layer.{}.attention.qkv_proj", "query", "key", "value"),
        **fused("encoder.layer.{}.attention.o_proj", "attention_output"),
        **fused("encoder.layer.{}.mlp.up_gate_proj", "intermediate", "gate"),
        **fused("encoder.layer.{}.mlp.down_proj", "output"),
    }


class JinaV3(FirstTokenClassifier, BertPooler, LmHead, RotaryPostNorm):
    """jina v3: headless models have a pooler, classifiers a dense layer instead."""

    parts = (*ATTENTION_PARTS, Part("intermediate", "mlp.fc1"), Part("output", "mlp.fc2"))
    uses_segments = False
    published: ClassVar[Published] = {
        **fused("encoder.layers.{}.mixer.Wqkv", "query", "key", "value"),
        **fused("encoder.layers.{}.mixer.out_proj", "attention_output"),
        **fused("encoder.layers.{}.mlp.fc1", "intermediate"),
        **fused("encoder.layers.{}.mlp.fc2", "output"),
    }


_CLASSES: dict[str, Callable[[PreTrainedModel], Family]] = {
    "nomic_bert": NomicBert,
    "gte": Gte,
    "jina_embeddings_v3": JinaV3,
}


def ADAPTER(model: PreTrainedModel) -> Family:  # noqa: N802
    """The adapter of whichever of the three ``model`` is."""
    return _CLASSES[model.config.model_type](model)
