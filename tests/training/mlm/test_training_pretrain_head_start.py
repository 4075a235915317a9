"""The head start: counts against a plain loop, vectors against numpy's SVD, heads by looking."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from microtome.families import adapt
from microtome.training.mlm.building import new_model
from microtome.training.mlm.head_start import (
    calm_,
    head_start_,
    leading_vectors,
    pair_counts,
    positive_information,
)
from microtome.training.mlm.rows import Tokens, cut

TOKENS = Tokens(cls=2, sep=3, mask=4, first_ordinary=5, n_vocabulary=40, full_stop=7)


def stream_of(n: int = 4000) -> np.ndarray:
    # A walk round seven groups of five synonyms: which of the five stands there is chance.
    random = np.random.default_rng(0)
    groups = np.cumsum(random.choice([1, 2], n)) % 7
    return (5 + 5 * groups + random.integers(0, 5, n)).astype(np.uint16)


def started(family: str, layers: int = 2):
    model = new_model(
        family, layers=layers, width=128, heads=4, embedding=64, vocabulary=40, positions=64, seed=0
    )
    head_start_(model, stream_of(), tokens=TOKENS, seed=0)
    return model


def test_pairs_are_counted_as_a_plain_loop_counts():
    stream = np.array([5, 6, 7, 3, 5, 6, 9, 1, 6, 5], dtype=np.int32)
    for distance in (1, 2):
        wanted = Counter(
            (a, b)
            for a, b in zip(stream, stream[distance:], strict=False)
            if a >= TOKENS.first_ordinary and b >= TOKENS.first_ordinary
        )
        counts = pair_counts(stream, distance, TOKENS).toarray()
        assert counts.sum() == wanted.total()
        assert all(counts[a, b] == n for (a, b), n in wanted.items())


def test_information_is_positive_only_for_pairs_seen_more_than_by_chance():
    counts = csr_matrix(np.array([[50.0, 1.0], [1.0, 50.0]], dtype=np.float32))
    found = positive_information(counts).toarray()
    assert found[0, 0] > 0.5  # p(b|a)/p(b) is about 2: log 2 = 0.69
    assert found[0, 1] == found[1, 0] == 0


def test_leading_vectors_span_what_numpys_svd_finds():
    matrix = np.random.default_rng(0).standard_normal((60, 80)) @ np.diag(0.9 ** np.arange(80))
    found = leading_vectors(csr_matrix(matrix.astype(np.float32)), 5, seed=0)
    left, values, _ = np.linalg.svd(matrix)
    wanted = left[:, :5] * values[:5] ** 0.5
    for ours, numpys in zip(found.T, wanted.T, strict=True):
        cosine = abs(ours @ numpys) / np.linalg.norm(ours) / np.linalg.norm(numpys)
        assert cosine > 0.99
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), values[:5] ** 0.5, rtol=0.02)


def test_the_bias_is_the_logarithm_of_frequencies():
    bias = adapt(started("bert")).mlm_decoder().bias.detach()
    counts = np.bincount(stream_of(), minlength=40) + 1
    np.testing.assert_allclose(np.exp(bias.numpy()), counts / counts.sum(), rtol=1e-4)


def test_tokens_with_like_neighbours_begin_alike():
    words = adapt(started("bert")).word_embeddings.detach()[5:]
    words = words / words.norm(dim=1, keepdim=True)
    alike = words @ words.T
    group = torch.arange(35) // 5
    same = group[:, None] == group
    assert alike[same].mean() > alike[~same].mean() + 0.3


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_the_first_heads_look_at_the_neighbours(family):
    bound = adapt(started(family))
    rows = torch.from_numpy(cut(stream_of(600), length=62, offset=0, tokens=TOKENS))
    positions = torch.arange(62).expand_as(rows)
    with torch.no_grad():
        states = bound.embed(rows, positions, torch.zeros_like(rows))
        query, key, _ = bound.project(0, states, positions)
        scores = torch.einsum("bqhd,bkhd->hbqk", query, key) * bound.scaling
    attention = scores.softmax(-1)
    for head, offset in enumerate((-1, 1, -2, 2)):
        # Away from the ends, where the neighbour exists for every query.
        by_offset = {
            o: torch.diagonal(attention[head], offset=o, dim1=1, dim2=2).mean().item()
            for o in range(-6, 7)
        }
        assert max(by_offset, key=lambda o: by_offset[o]) == offset
        assert by_offset[offset] > 5 / 62  # five times uniform attention


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_calm_layers_hand_their_input_on_and_embeddings_are_as_small_as_fresh_ones(family):
    model = started(family, layers=12)
    ids = torch.randint(5, 40, (4, 20), generator=torch.Generator().manual_seed(0))

    def likeness() -> float:
        with torch.no_grad():
            first, *_, last = model.base_model(ids, output_hidden_states=True).hidden_states
        return float(torch.cosine_similarity(first, last, dim=-1).mean())

    before = likeness()
    calm_(model)
    assert before < 0.2
    assert likeness() > 0.5
    size = float(adapt(model).word_embeddings.detach().std())
    assert size == pytest.approx(model.config.initializer_range, rel=1e-3)
