"""A head start from counting, before the first gradient.

A fresh masked-LM spends its first millions of tokens on what can be counted in seconds: how common
a token is, which tokens have like neighbours, and that neighbours matter. So the decoder's bias
begins as log frequencies, word embeddings as the leading singular vectors of the tokens' positive
pointwise mutual information with their neighbours (Levy & Goldberg 2014), positions as sinusoids,
and the first layer's heads look at the neighbours. All of it is trained on like any other weight.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from microtome.families import adapt
from microtome.training.pretraining.rows import Array, Tokens

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

DISTANCES = (1, 2)  # of neighbours, on both sides
MOST_TOKENS = 50_000_000
SMOOTHING = 0.75  # of neighbours' frequencies, as in word2vec
SHARPNESS = 2.5  # how strongly the first heads look at their neighbour
SLOWEST = 1000.0  # the longest wave of the positions, in tokens over 2π


@torch.no_grad()
def warm_start_(model: PreTrainedModel, stream: Array, *, tokens: Tokens, seed: int) -> None:
    """Write the head start into a fresh model."""
    family = adapt(model)
    random = torch.Generator().manual_seed(seed)
    scale = family.shape.width**-0.5
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            parameter.normal_(std=scale, generator=random)
            if "token_type" in name:
                parameter.mul_(0.1)
    words = torch.from_numpy(neighbour_embeddings(
        stream, tokens=tokens, width=family.shape.embedding_width, seed=seed
    ))  # fmt: skip
    words = _spread(words[tokens.first_ordinary :], random)
    family.word_embeddings[tokens.first_ordinary :] = words * (scale / words.std())
    counts = np.bincount(stream, minlength=tokens.n_vocabulary) + 1.0
    bias = torch.from_numpy(np.log(counts / counts.sum())).float()
    family.mlm_decoder().bias.copy_(bias)
    positions = _named(model, "position_embeddings.weight")
    positions.copy_(waves(*positions.shape) * (scale * math.sqrt(2)))
    # What the first heads read is mostly position: else a token would look at its likes.
    positions[:, : family.shape.head_width] *= 2
    family.word_embeddings[:, : family.shape.head_width] *= 0.5
    _pass_embeddings_on_(model, random)
    _look_at_neighbours_(model, random)


def neighbour_embeddings(stream: Array, *, tokens: Tokens, width: int, seed: int) -> Array:
    """Word vectors (V, width) from the tokens' neighbours; special tokens get zeros."""
    from scipy.sparse import hstack

    counted = np.asarray(stream[:MOST_TOKENS], dtype=np.int32)
    blocks = []
    for distance in DISTANCES:
        pairs = pair_counts(counted, distance, tokens)
        blocks += [positive_information(pairs), positive_information(pairs.T.tocsr())]
    return leading_vectors(hstack(blocks).tocsr(), width, seed=seed)


def pair_counts(stream: Array, distance: int, tokens: Tokens) -> csr_matrix:
    """How often a token stands `distance` before another: (V, V); special tokens aren't counted."""
    from scipy.sparse import coo_matrix

    left, right = stream[:-distance], stream[distance:]
    ordinary = (left >= tokens.first_ordinary) & (right >= tokens.first_ordinary)
    ones = np.ones(int(ordinary.sum()), dtype=np.float32)
    shape = (tokens.n_vocabulary, tokens.n_vocabulary)
    return coo_matrix((ones, (left[ordinary], right[ordinary])), shape=shape).tocsr()


def positive_information(counts: csr_matrix) -> csr_matrix:
    """max(0, log p(b | a) / p(b)) where a pair was seen, p(b) smoothed."""
    from scipy.sparse import csr_matrix

    rows = np.asarray(counts.sum(1)).ravel() + 1
    columns = np.asarray(counts.sum(0)).ravel() ** SMOOTHING + 1
    pairs = counts.tocoo()
    expected = rows[pairs.row] * (columns / columns.sum())[pairs.col]
    values = np.maximum(0, np.log(pairs.data / expected)).astype(np.float32)
    result = csr_matrix((values, (pairs.row, pairs.col)), shape=counts.shape)
    result.eliminate_zeros()
    return result


def leading_vectors(matrix: csr_matrix, width: int, *, seed: int) -> Array:
    """The left singular vectors times the root of their values, by subspace iteration."""
    turned = matrix.T.tocsr()
    n = matrix.shape[0]
    basis: Any = np.random.default_rng(seed).standard_normal((n, min(n, width + 32)))
    basis = basis.astype(np.float32)
    for _ in range(4):
        basis, _ = np.linalg.qr(matrix @ (turned @ basis))
    small = (turned @ basis).T
    vectors, squares, _ = np.linalg.svd(small @ small.T)
    found = (basis @ vectors)[:, :width] * squares[:width] ** 0.25
    return np.pad(found, ((0, 0), (0, width - found.shape[1]))).astype(np.float32)


def _spread(words: Tensor, random: torch.Generator) -> Tensor:
    """Centred, and turned at random: the strongest directions mustn't cover a few dimensions."""
    turn, _ = torch.linalg.qr(torch.randn(words.shape[1], words.shape[1], generator=random))
    spread: Tensor = (words - words.mean(0)) @ turn
    return spread


def waves(n_positions: int, width: int) -> Tensor:
    """Sinusoids, cosine and sine of a wave side by side: (positions, width)."""
    angles = torch.arange(n_positions)[:, None] * _frequencies(width)
    table: Tensor = torch.stack([angles.cos(), angles.sin()], dim=-1).reshape(n_positions, -1)
    return table


def _frequencies(width: int) -> Tensor:
    n_waves = width // 2
    frequencies: Tensor = torch.exp(-math.log(SLOWEST) * torch.arange(n_waves) / n_waves)
    return frequencies


def _named(model: PreTrainedModel, ending: str) -> Tensor:
    found: Tensor = next(p for name, p in model.named_parameters() if name.endswith(ending))
    return found


def _pass_embeddings_on_(model: PreTrainedModel, random: torch.Generator) -> None:
    """Where embeddings are narrower than the layers, they begin as the first part of the states."""
    for name, parameter in model.named_parameters():
        if name.endswith("embedding_hidden_mapping_in.weight"):
            parameter.normal_(std=0.02, generator=random)
            parameter += torch.eye(*parameter.shape)


def _look_at_neighbours_(model: PreTrainedModel, random: torch.Generator) -> None:
    """Heads 0 to 3 of the first layer: a query turned by one token matches its neighbour's key."""
    family = adapt(model)
    layer, head_width = family.layers[0], family.shape.head_width
    frequencies = _frequencies(family.shape.embedding_width)[: head_width // 2]
    offsets = [side * distance for distance in DISTANCES for side in (-1, 1)]
    for head, offset in enumerate(offsets[: family.shape.n_heads]):
        rows = family.head_rows(head)
        for part, turn in (("query", offset), ("key", 0)):
            weight = family.part(part).weight(layer)[rows]
            weight.normal_(std=0.02, generator=random)
            turned = turns(frequencies * turn) * math.sqrt(SHARPNESS)
            weight[: len(turned), : len(turned)] += turned


def turns(angles: Tensor) -> Tensor:
    """A block diagonal of rotations, one per wave: (2n, 2n)."""
    cos, sin = angles.cos(), angles.sin()
    blocks = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
    diagonal: Tensor = torch.block_diag(*blocks)  # type: ignore[no-untyped-call]
    return diagonal
