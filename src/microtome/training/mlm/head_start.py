"""A head start from counting, before the first gradient.

A fresh masked LM spends its first millions of tokens on what can be counted in seconds: how common
a token is, which tokens have like neighbours, and that neighbours matter. So the decoder's bias
begins as log frequencies, word embeddings as the leading singular vectors of the tokens' positive
pointwise mutual information with their neighbours (Levy & Goldberg 2014), positions as sinusoids,
and the first layer's heads look at the neighbours. All of it is trained on like any other weight.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.sparse import coo_matrix, csr_matrix, hstack
from torch import Tensor
from transformers import PreTrainedModel

from microtome.families import adapt
from microtome.training.mlm.rows import Array, Tokens

DISTANCES = (1, 2)  # of neighbours, on both sides
MOST_TOKENS = 50_000_000
SMOOTHING = 0.75  # of neighbours' frequencies, as in word2vec
SHARPNESS = 2.5  # how strongly the first heads look at their neighbour
SLOWEST = 1000.0  # the longest wave of the positions, in tokens over 2π


@torch.no_grad()
def head_start_(model: PreTrainedModel, stream: Array, *, tokens: Tokens, seed: int) -> None:
    """Write the head start into a fresh model."""
    family = adapt(model)
    random = torch.Generator().manual_seed(seed)
    scale = family.shape.width**-0.5
    parameters = dict(model.named_parameters())
    for name, parameter in parameters.items():
        if parameter.dim() == 2:
            parameter.normal_(std=scale, generator=random)
            if "token_type" in name:
                parameter.mul_(0.1)
    embeddings = neighbour_embeddings(
        stream, tokens=tokens, width=family.shape.embedding_width, seed=seed
    )
    words = _spread(torch.from_numpy(embeddings)[tokens.first_ordinary :], random)
    family.word_embeddings[tokens.first_ordinary :] = words * (scale / words.std())
    counts = np.bincount(stream, minlength=tokens.n_vocabulary) + 1.0
    family.mlm_decoder().bias.copy_(torch.from_numpy(np.log(counts / counts.sum())))
    positions = next(p for n, p in parameters.items() if n.endswith("position_embeddings.weight"))
    positions.copy_(waves(*positions.shape) * (scale * math.sqrt(2)))
    # What the first heads read is mostly position: else a token would look at its likes.
    positions[:, : family.shape.head_width] *= 2
    family.word_embeddings[:, : family.shape.head_width] *= 0.5
    for name, parameter in parameters.items():
        if name.endswith("embedding_hidden_mapping_in.weight"):  # narrow embeddings come first
            parameter.normal_(std=0.02, generator=random).add_(torch.eye(*parameter.shape))
    _look_at_neighbours_(model, random)


@torch.no_grad()
def calm_(model: PreTrainedModel) -> None:
    """Let every layer begin near the identity, and make embeddings as small as fresh ones.

    Without the first, 12 layers stay at guessing the commonest token; without the second,
    fine-tuning's small steps can hardly move the embeddings.
    """
    family = adapt(model)
    n_layers, distinct = family.shape.n_layers, dict.fromkeys(family.layers)
    for layer in distinct:
        for part in ("attention_output", "output"):
            # What independent layers add grows with the root of their number, what one that is
            # applied again and again adds with the number itself.
            weight = family.part(part).weight(layer)
            weight.div_(math.sqrt(2 * n_layers * n_layers / len(distinct)))
    shrink = float(model.config.initializer_range) / family.word_embeddings.std()
    for name, parameter in model.named_parameters():
        if name.endswith("_embeddings.weight"):
            parameter.mul_(shrink)


def neighbour_embeddings(stream: Array, *, tokens: Tokens, width: int, seed: int) -> Array:
    """Word vectors (V, width) from the tokens' neighbours; special tokens get zeros."""
    counted = np.asarray(stream[:MOST_TOKENS], dtype=np.int32)
    blocks = []
    for distance in DISTANCES:
        pairs = pair_counts(counted, distance, tokens)
        blocks += [positive_information(pairs), positive_information(pairs.T.tocsr())]
    return leading_vectors(hstack(blocks).tocsr(), width, seed=seed)


def pair_counts(stream: Array, distance: int, tokens: Tokens) -> csr_matrix:
    """How often a token is `distance` before another: (V, V); special tokens aren't counted."""
    left, right = stream[:-distance], stream[distance:]
    ordinary = (left >= tokens.first_ordinary) & (right >= tokens.first_ordinary)
    ones = np.ones(int(ordinary.sum()), dtype=np.float32)
    shape = (tokens.n_vocabulary, tokens.n_vocabulary)
    return coo_matrix((ones, (left[ordinary], right[ordinary])), shape=shape).tocsr()


def positive_information(counts: csr_matrix) -> csr_matrix:
    """max(0, log p(b | a) / p(b)) where a pair was seen, p(b) smoothed."""
    rows = np.asarray(counts.sum(1)).ravel() + 1
    columns = np.asarray(counts.sum(0)).ravel() ** SMOOTHING + 1
    pairs = counts.tocoo()
    expected = rows[pairs.row] * (columns / columns.sum())[pairs.col]
    values = np.maximum(0, np.log(pairs.data / expected)).astype(np.float32)
    return csr_matrix((values, (pairs.row, pairs.col)), shape=counts.shape)


def leading_vectors(matrix: csr_matrix, width: int, *, seed: int) -> Array:
    """The left singular vectors times the root of their values, by subspace iteration."""
    turned = matrix.T.tocsr()
    n = matrix.shape[0]
    random = np.random.default_rng(seed)
    basis = random.standard_normal((n, min(n, width + 32))).astype(np.float32)
    for _ in range(4):
        basis, _ = np.linalg.qr(matrix @ (turned @ basis))
    small = (turned @ basis).T
    vectors, squares, _ = np.linalg.svd(small @ small.T)
    leading = (basis @ vectors)[:, :width] * squares[:width] ** 0.25
    return np.pad(leading, ((0, 0), (0, width - leading.shape[1]))).astype(np.float32)


def _spread(words: Tensor, random: torch.Generator) -> Tensor:
    """Centred, and turned at random: the strongest directions mustn't cover a few dimensions."""
    turn, _ = torch.linalg.qr(torch.randn(words.shape[1], words.shape[1], generator=random))
    spread: Tensor = (words - words.mean(0)) @ turn
    return spread


def waves(n_positions: int, width: int) -> Tensor:
    """Sinusoids, cosine and sine of a wave side by side: (positions, width)."""
    angles = torch.arange(n_positions)[:, None] * _frequencies(width)
    return torch.stack([angles.cos(), angles.sin()], dim=-1).reshape(n_positions, -1)


def _frequencies(width: int) -> Tensor:
    n_waves = width // 2
    return torch.exp(-math.log(SLOWEST) * torch.arange(n_waves) / n_waves)


def _look_at_neighbours_(model: PreTrainedModel, random: torch.Generator) -> None:
    """Heads 0 to 3 of the first layer: a query turned by one token matches its neighbour's key."""
    family = adapt(model)
    head_width = family.shape.head_width
    frequencies = _frequencies(family.shape.embedding_width)[: head_width // 2]
    offsets = [side * distance for distance in DISTANCES for side in (-1, 1)]
    for head, offset in enumerate(offsets[: family.shape.n_heads]):
        for part, turn in (("query", offset), ("key", 0)):
            weight = family.part(part).weight(family.layers[0])[family.head_rows(head)]
            weight.normal_(std=0.02, generator=random)
            cos, sin = (frequencies * turn).cos(), (frequencies * turn).sin()
            blocks = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
            turned = torch.block_diag(*blocks) * math.sqrt(SHARPNESS)  # type: ignore[no-untyped-call]
            weight[: len(turned), : len(turned)] += turned
