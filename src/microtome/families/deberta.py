"""DeBERTa-v2 and v3: scores of contents with contents, contents with positions, and the reverse.

What surprised in transformers' code:

- The scale counts the terms of ``pos_att_type`` even where ``relative_attention`` is off.
- With ``share_att_key`` positions go through the query and key projections of contents, biases
  included, so zero query rows silence both terms. Without it positions have projections of their
  own, and only zero rows of both query projections do.
- Both terms of a query and a key use the same row of ``rel_embeddings``: that of query − key.
- The masked LM of ``legacy=False`` has no decoder module, and its ``get_output_embeddings`` gives
  the dense layer before it. v3's config doesn't say ``legacy``; its tensors are the new head's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

from microtome.errors import UnsupportedFamily
from microtome.families.anatomy import Part, split_heads
from microtome.families.bert import BertLike

SELF = "attention.self"


class Deberta(BertLike):
    """DeBERTa-v2: ``encoder.rel_embeddings`` and their norm belong to no layer."""

    keys_are_linear = False  # positions read the keys, too

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__(model)
        self._refuse_variants()
        terms = self.config.pos_att_type or ()
        self.n_terms = ("c2p" in terms) + ("p2c" in terms)
        relative = bool(self.config.relative_attention)
        self.reads_positions = relative and "c2p" in terms  # contents (queries) with positions
        self.is_read_by_positions = relative and "p2c" in terms
        self.shares_projections = bool(getattr(self.config, "share_att_key", False))
        self.parts = self._parts()
        self._tables: dict[int, tuple[Tensor | None, Tensor | None]] = {}  # by layer

    def _refuse_variants(self) -> None:
        config, shape = self.config, self.shape
        if getattr(config, "conv_kernel_size", 0) > 0:
            raise UnsupportedFamily(
                "this DeBERTa has a convolution next to layer 0 "
                f"(conv_kernel_size {config.conv_kernel_size}), which isn't supported",
                "use a checkpoint without it: deberta-v3, or deberta-v2 with conv_kernel_size 0",
            )
        if getattr(config, "attention_head_size", shape.head_width) != shape.head_width:
            raise UnsupportedFamily(
                f"attention_head_size must be {shape.head_width}, got {config.attention_head_size}"
            )

    def _parts(self) -> tuple[Part, ...]:
        parts = [Part(name, f"{SELF}.{name}_proj") for name in ("query", "key", "value")]
        parts += [part for part in BertLike.parts if not part.path.startswith(SELF)]
        has_own = {"key": self.reads_positions, "query": self.is_read_by_positions}
        for name in (name for name, own in has_own.items() if own and not self.shares_projections):
            parts.append(Part(f"position_{name}", f"{SELF}.pos_{name}_proj"))
        return tuple(parts)

    @property
    def uses_segments(self) -> bool:  # type: ignore[override]
        """v3 has none."""
        return int(self.config.type_vocab_size) > 0

    def embed(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        """Words, and what the config adds to them; then up to the blocks' width."""
        tables = self.body.embeddings
        summed: Tensor = tables.word_embeddings(ids)
        if tables.position_biased_input:
            summed = summed + tables.position_embeddings(positions)
        if tables.token_type_embeddings is not None:
            summed = summed + tables.token_type_embeddings(segments)
        if tables.embed_proj is not None:
            summed = tables.embed_proj(summed)
        states: Tensor = tables.dropout(tables.LayerNorm(summed))
        return states

    @property
    def scaling(self) -> float:
        """By the number of terms, too."""
        return float((self.shape.head_width * (1 + self.n_terms)) ** -0.5)

    def position_scores(
        self, index: int, length: int, query: Tensor, key: Tensor | None
    ) -> Tensor | None:
        """Queries with position keys, and keys with position queries, by distance."""
        if not (self.reads_positions or self.is_read_by_positions):
            return None
        n_queries = query.shape[-2]
        # One distance more than there are at either end, for ``skewed``.
        rows = self._rows(torch.arange(-length, n_queries + 1, device=query.device))
        position_key, position_query = self._projected_positions(index, rows)
        terms: list[Tensor] = []
        if position_key is not None:  # distances Q−1 … −L
            across = torch.einsum("nhqd,hrd->nhqr", query, position_key[:, :-1].flip(1))
            terms.append(skewed(across, length))
        if position_query is not None:  # distances −(L−1) … Q
            assert key is not None  # keys_are_linear is False
            down = torch.einsum("nhkd,hrd->nhkr", key, position_query[:, 1:])
            terms.append(skewed(down, n_queries).mT)
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]

    def position_flops(self, length: int) -> float:
        """Transformers projects and meets the whole table, once per text."""
        if not self.config.relative_attention:
            return 0.0
        n_rows, width = len(self.body.encoder.rel_embeddings.weight), self.shape.width
        n_projected = 2 * n_rows if self.shares_projections else self.n_terms * (n_rows - length)
        return float(2 * width * width * n_projected + 2 * self.n_terms * length * n_rows * width)

    def _rows(self, distances: Tensor) -> Tensor:
        """The rows of ``rel_embeddings`` for distances query − key, as transformers finds them."""
        sizes = self.layers[0].attention.self
        if sizes.position_buckets > 0:
            distances = make_log_bucket_position(
                distances, sizes.position_buckets, sizes.max_relative_positions
            ).long()
        span = int(sizes.pos_ebd_size)
        return (distances + span).clamp(0, 2 * span - 1)

    def _projected_positions(self, index: int, rows: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Scaled position keys and queries (H, R, Dh) of a layer, for some rows of the table."""
        if not torch.is_inference_mode_enabled():  # weights may change, or need gradients
            return self._project_positions(index, rows)
        if index not in self._tables:
            self._tables[index] = self._project_positions(index, None)
        key, query = self._tables[index]
        return None if key is None else key[:, rows], None if query is None else query[:, rows]

    def _project_positions(
        self, index: int, rows: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None]:
        block: Any = self.layers[index].attention.self
        table = self.body.encoder.get_rel_embedding()
        table = block.pos_dropout(table if rows is None else table[rows])  # (R, D)
        shared = self.shares_projections

        def by_head(projection: nn.Module) -> Tensor:
            projected = split_heads(projection(table), self.shape.head_width)
            return projected.transpose(0, 1) * self.scaling

        key, query = None, None
        if self.reads_positions:
            key = by_head(block.key_proj if shared else block.pos_key_proj)
        if self.is_read_by_positions:
            query = by_head(block.query_proj if shared else block.pos_query_proj)
        return key, query

    def tied_features(self, states: Tensor) -> Tensor:
        """Back to the embedding width by the transpose of the way up."""
        projection = self.body.embeddings.embed_proj
        return states if projection is None else states @ projection.weight

    def mlm_features(self, states: Tensor) -> Tensor:
        """Dense, activation, norm, in either layout of the head."""
        head = self._mlm_transform()
        features: Tensor = head.LayerNorm(head.transform_act_fn(head.dense(states)))
        return features

    def _mlm_transform(self) -> Any:  # noqa: ANN401 (transformers' modules are untyped)
        model = self.model
        return model.cls.predictions.transform if model.legacy else model.lm_predictions.lm_head

    def mlm_norm(self) -> nn.LayerNorm:
        """The norm that makes the features."""
        return self._mlm_transform().LayerNorm  # type: ignore[no-any-return]

    def mlm_decoder(self) -> nn.Linear:
        """The word embeddings and a bias; the new layout has no module for the two."""
        if self.model.legacy:
            return self.model.cls.predictions.decoder  # type: ignore[no-any-return]
        decoder = nn.Linear(1, 1, device="meta")  # a shell for the parameters
        decoder.weight = self.body.embeddings.word_embeddings.weight
        decoder.bias = self.model.lm_predictions.lm_head.bias
        return decoder

    def classify(self, pooled: Tensor) -> Tensor:
        """The pooler is part of the head; it reads the first of a list of states."""
        features = self.model.pooler(pooled[:, None])
        logits: Tensor = self.model.classifier(self.model.dropout(features))
        return logits


def skewed(scores: Tensor, n_columns: int) -> Tensor:
    """Row a's entries from column A − 1 − a on: (…, A, A + B) → (…, A, B), without a copy."""
    n_rows, width = scores.shape[-2:]
    flat = scores.flatten(-2)[..., n_rows - 1 : n_rows - 1 + n_rows * (width - 1)]
    return flat.view(*flat.shape[:-1], n_rows, width - 1)[..., :n_columns]


ADAPTER = Deberta
