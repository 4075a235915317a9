"""CKA against the Gram formula written out, influence and angles against plain transformers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from microtome.errors import DataError
from microtome.observe import similarity
from microtome.observe.similarity import Alignment, layer_similarity
from support.naive import padded, random_texts
from support.tiny import FAMILY_TYPES, tiny_model


def plain_states(model, texts, family):
    """Per text, the states (depths, L, D) that transformers gives; the last one before any norm."""
    kept = {}
    layers = model.base_model
    norm = getattr(layers, "final_norm", None) or getattr(layers, "norm", None)
    hook = None
    if norm is not None:
        hook = norm.register_forward_pre_hook(lambda module, given: kept.update(last=given[0]))
    batch = padded(texts, family)
    with torch.no_grad():
        out = model.base_model(**batch, output_hidden_states=True)
    if hook is not None:
        hook.remove()
    states = list(out.hidden_states)
    states[-1] = kept.get("last", states[-1])
    stacked = torch.stack(states).double()  # (depths, B, L, D)
    return [stacked[:, i, :length].numpy() for i, length in enumerate(texts.lengths)]


def hsic(k, ell):
    """The unbiased estimate of Song et al. 2012, eq. 5, letter by letter."""
    n = len(k)
    k, ell, one = k - np.diag(np.diag(k)), ell - np.diag(np.diag(ell)), np.ones(n)
    return (
        np.trace(k @ ell)
        + (one @ k @ one) * (one @ ell @ one) / ((n - 1) * (n - 2))
        - 2 / (n - 2) * (one @ k @ ell @ one)
    ) / (n * (n - 3))


def cka(ours, theirs):
    """Of lists of batches (n, D)."""
    grams = [[x @ x.T for x in batches] for batches in (ours, theirs)]
    cross = sum(hsic(k, ell) for k, ell in zip(*grams, strict=True))
    norms = [sum(hsic(k, k) for k in side) for side in grams]
    return cross / np.sqrt(norms[0] * norms[1])


def angle(one, two):
    norms = np.linalg.norm(one, axis=-1) * np.linalg.norm(two, axis=-1)
    return np.clip((one * two).sum(-1) / norms, -1, 1)


@pytest.fixture
def texts():
    return random_texts([5, 9, 7, 12, 5, 6, 8, 11, 4, 10, 7, 9])


@pytest.mark.parametrize("family", FAMILY_TYPES)
def test_every_number_equals_one_computed_from_plain_states(family, texts, monkeypatch):
    monkeypatch.setattr(similarity, "BATCH", 6)
    model, other = (tiny_model(family, "none", seed=seed) for seed in (0, 1))
    found = layer_similarity(model, texts, other=(other, texts))
    states, others = (plain_states(each, texts, family) for each in (model, other))
    batches = list(similarity._batches(len(texts), None, 0))
    assert sorted(np.concatenate(batches)) == list(range(len(texts)))
    vectors, other_vectors = (
        [[np.stack([side[t][depth].mean(0) for t in batch]) for batch in batches]
         for depth in range(4)]
        for side in (states, others)
    )  # fmt: skip
    for i in range(4):
        for j in range(4):
            within = cka(vectors[i], vectors[j])
            assert found.within.cka[i, j] == pytest.approx(within, abs=1e-4)
            across = cka(vectors[i], other_vectors[j])
            assert found.across.cka[i, j] == pytest.approx(across, abs=1e-4)
    for t, state in enumerate(states):
        cosines = np.array([[angle(a, b).mean() for b in state] for a in state])
        turned = np.array([[(np.arccos(angle(a, b)) / np.pi).mean() for b in state] for a in state])
        np.fill_diagonal(turned, 0)
        assert found.influence[t] == pytest.approx(1 - np.diag(cosines, 1), abs=1e-4)
        assert found.angles[t] == pytest.approx(turned, abs=1e-4)


def test_a_model_is_like_itself_and_a_rotation_changes_nothing():
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.normal(size=(1, 20, 6)))
    turn = torch.from_numpy(np.linalg.qr(rng.normal(size=(6, 6)))[0])
    grams = [similarity._centred_grams(x) for x in (rows, 3 * rows @ turn + 5)]
    cross, ours, theirs = (
        similarity._products(a, b)
        for a, b in ((grams[0], grams[1]), (grams[0], grams[0]), (grams[1], grams[1]))
    )
    assert cross[0, 0] ** 2 == pytest.approx(ours[0, 0] * theirs[0, 0])


def test_independent_states_have_no_similarity_on_average():
    """The point of the debiasing: few texts in many dimensions look alike to the plain estimate."""
    rng = np.random.default_rng(0)
    n, width, cross = 12, 64, []
    for _ in range(400):
        a, b = (torch.from_numpy(rng.normal(size=(1, n, width))) for _ in range(2))
        ours, theirs = similarity._centred_grams(a), similarity._centred_grams(b)
        norm = float((ours**2).sum() * (theirs**2).sum()) ** 0.5
        cross.append(float(similarity._products(ours, theirs)[0, 0]) / norm)
    assert abs(np.mean(cross)) < 3 * np.std(cross) / np.sqrt(len(cross)) + 1e-3


def test_the_interval_covers_the_value_of_many_texts():
    """95 % of jackknife intervals should hold the truth; 400 tries allow 91 % to 98 %."""
    rng = np.random.default_rng(1)

    def alignment(n_batches, n=16):
        parts = []
        for _ in range(n_batches):
            a = rng.normal(size=(1, n, 3))
            b = a + rng.normal(size=(1, n, 3))
            grams = [similarity._centred_grams(torch.from_numpy(x)) for x in (a, b)]
            pairs = ((0, 1), (0, 0), (1, 1))
            parts.append([similarity._products(grams[i], grams[j])[0, 0] for i, j in pairs])
        cross, ours, theirs = np.array(parts).T
        return Alignment(cross[:, None, None], ours[:, None], theirs[:, None])

    truth = alignment(20_000).cka[0, 0]
    held = 0
    for _ in range(400):
        low, high = alignment(12).ends()
        held += low[0, 0] <= truth <= high[0, 0]
    assert 0.91 < held / 400 < 0.98


def test_one_token_of_each_text_is_the_same_in_both_models(texts):
    model = tiny_model("bert", "none")
    found = layer_similarity(model, texts, other=(model, texts), unit="token")
    assert np.diag(found.across.cka) == pytest.approx(np.ones(4))
    by_text = layer_similarity(model, texts)
    assert abs(found.within.cka - by_text.within.cka).max() > 1e-3


def test_texts_of_a_cluster_are_in_one_batch(monkeypatch):
    monkeypatch.setattr(similarity, "BATCH", 4)
    clusters = np.repeat(np.arange(8), 2)
    batches = list(similarity._batches(16, clusters, 0))
    assert len(batches) == 4
    for batch in batches:
        assert all(len(set(clusters[batch]) & set(clusters[other])) == 0
                   for other in batches if other is not batch)  # fmt: skip


def test_too_few_texts_are_refused():
    with pytest.raises(DataError, match="got 3"):
        layer_similarity(tiny_model("bert", "none"), random_texts([5, 6, 7]))
