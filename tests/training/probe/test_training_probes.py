"""Probes on cached states: the same as one truncated encoder and one classifier at a time."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from microtome import load, parse
from microtome.errors import Diverged, RequestError, StorageError
from microtome.models import load_tokenizer
from microtome.observe.evaluation import encode_for
from microtome.training.probe.fitting import fit_converged, fit_paper
from microtome.training.probe.probes import (
    PAPER,
    collect,
    majority,
    probe,
    probe_depths,
    random_encoder,
)
from microtome.training.probe.states import cache_states
from microtome.training.recipe import Recipe, Seeds
from support.tiny import FAMILY_TYPES
from support.training_rows import checkpoint, rows


def truncated(encoder, depth: int):
    """The plain encoder without the layers above ``depth``, by transformers' own modules."""
    cut = copy.deepcopy(encoder)
    if cut.config.model_type == "albert":
        cut.config.num_hidden_layers = depth
    elif cut.config.model_type == "distilbert":
        cut.transformer.layer = cut.transformer.layer[:depth]
        cut.transformer.n_layers = depth
    elif hasattr(cut, "layers"):  # ModernBERT and the rotary families
        cut.layers = cut.layers[:depth]
    else:
        cut.encoder.layer = cut.encoder.layer[:depth]
    return cut.eval()


@pytest.mark.parametrize("family", FAMILY_TYPES)
def test_the_cache_holds_what_truncated_encoders_give(family, tmp_path):
    base = checkpoint(tmp_path / "base", family, "none")
    encoder, dataset = load(str(base)), rows(tmp_path, "pair", n=8)
    encoded = encode_for(encoder, load_tokenizer(str(base)), dataset)
    cached = cache_states(encoder, encoded, tmp_path / "states")
    for depth in range(4):
        if depth == 0 and family in ("albert", "deberta-v2"):
            continue  # transformers can't run these without a layer
        cut = truncated(encoder, depth)
        for index in range(len(encoded)):
            batch = {"input_ids": torch.from_numpy(encoded.row(index).astype(np.int64))[None]}
            if encoded.segments is not None:
                own = encoded.segments[encoded.offsets[index] : encoded.offsets[index + 1]]
                batch["token_type_ids"] = torch.from_numpy(own.astype(np.int64))[None]
            with torch.no_grad():
                states = cut(**batch).last_hidden_state[0]
            np.testing.assert_allclose(cached["cls"][depth, index], states[0], atol=1e-4)
            np.testing.assert_allclose(cached["mean"][depth, index], states.mean(0), atol=1e-4)


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_paper_probes_are_linear_layers_trained_one_by_one(kind):
    """An independent loop: nn.Linear, torch's AdamW, clip_grad_norm_, depth by depth."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(3, 50, 6)).astype(np.float32)
    targets = rng.integers(0, 3, 50) if kind == "classification" else rng.normal(size=50) * 9
    n_outputs = 3 if kind == "classification" else 1
    recipe = Recipe(learning_rate=0.05, batch_size=16, epochs=4, clip=0.7, weight_decay=0.1)
    ours = fit_paper(features, targets, kind, n_outputs, recipe, init_seed=1, data_seed=2)
    generator = torch.Generator().manual_seed(1)
    start = 0.02 * torch.randn(6, n_outputs, generator=generator)
    for depth in range(3):
        linear = torch.nn.Linear(6, n_outputs)
        with torch.no_grad():
            linear.weight.copy_(start.T)
            linear.bias.zero_()
        adamw = torch.optim.AdamW(
            [{"params": [linear.weight], "weight_decay": 0.1},
             {"params": [linear.bias], "weight_decay": 0.0}], lr=0.05,
        )  # fmt: skip
        for step in range(16):
            order = np.random.default_rng([2, step // 4]).permutation(50)
            chosen = order[(step % 4) * 16 : (step % 4 + 1) * 16]
            logits = linear(torch.from_numpy(features[depth, chosen]))
            wanted = torch.from_numpy(targets[chosen])
            loss = (
                torch.nn.functional.cross_entropy(logits, wanted)
                if kind == "classification"
                else torch.nn.functional.mse_loss(logits[:, 0], wanted.float())
            )
            adamw.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(linear.parameters(), 0.7)
            # Two of 16 steps warm up: 0, ½; then down to 0.
            adamw.param_groups[0]["lr"] = adamw.param_groups[1]["lr"] = 0.05 * (
                step / 2 if step < 2 else (16 - step) / 14
            )
            adamw.step()
        torch.testing.assert_close(ours.weight[depth], linear.weight.T, atol=1e-4, rtol=1e-3)
        torch.testing.assert_close(ours.bias[depth], linear.bias, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("n_outputs", [2, 3])
def test_converged_probes_are_scikit_learns_logistic_regression(n_outputs):
    rng = np.random.default_rng(0)
    features = (rng.normal(size=(2, 200, 8)) * [1, 5, 0.1, 1, 1, 1, 30, 1] + 3).astype(np.float32)
    targets = (features[0, :, 0] > 3).astype(int) + (n_outputs - 2) * rng.integers(0, 2, 200)
    ours = fit_converged(features, targets, "classification", n_outputs)
    for depth in range(2):
        scaled = StandardScaler().fit_transform(features[depth].astype(np.float64))
        theirs = LogisticRegression(C=1.0, tol=1e-8, max_iter=5000).fit(scaled, targets)
        shares = torch.from_numpy(ours.logits(features)[depth]).softmax(-1).numpy()
        np.testing.assert_allclose(shares, theirs.predict_proba(scaled), atol=2e-3)


def test_converged_regression_is_ridge():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(1, 80, 5)).astype(np.float32)
    targets = features[0] @ np.array([1.0, -2, 0, 3, 0]) + rng.normal(size=80)
    ours = fit_converged(features, targets, "regression", 1).logits(features)[0, :, 0]
    scaled = StandardScaler().fit_transform(features[0].astype(np.float64))
    np.testing.assert_allclose(ours, Ridge(1.0).fit(scaled, targets).predict(scaled), atol=1e-3)


def test_a_constant_feature_does_no_harm():
    features = np.ones((1, 20, 3), dtype=np.float32)
    features[0, :10, 1] = 2
    targets = np.arange(20) // 10
    logits = fit_converged(features, targets, "classification", 2).logits(features)[0]
    assert np.isfinite(logits).all()
    assert (logits.argmax(1) == targets).all()


def test_probing_finds_what_the_words_say(tmp_path):
    """The word that decides is in the mean of the embeddings, and not in the first token's."""
    base = checkpoint(tmp_path / "base")
    train, dev = rows(tmp_path, n=300), rows(tmp_path, n=100, seed=1)
    mean = probe(base, train, dev, feature="mean", recipe="converged")
    first = probe(base, train, dev, feature="cls", recipe="converged")
    assert len(mean.depths) == 4
    assert mean.depths[0].scores["accuracy"].low > 0.8
    assert first.depths[0].scores["accuracy"].value == 0.5  # one and the same state for all texts
    table = mean.rows()
    assert [(row["depth"], row["removed"]) for row in table if row["metric"] == "accuracy"] == [
        (0, 3), (1, 2), (2, 1), (3, 0),
    ]  # fmt: skip
    assert all(row["low"] <= row["value"] <= row["high"] and row["n"] == 100 for row in table)


def test_one_collection_serves_recipes_features_and_nested_fractions(tmp_path):
    base = checkpoint(tmp_path / "base")
    train, dev = rows(tmp_path, n=60), rows(tmp_path, n=20, seed=1)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with collect(base, train, dev, features=("cls", "mean"), scratch=scratch) as data:
        part = probe_depths(data, feature="mean", recipe="converged", fraction=0.5, seed=4)
        with pytest.raises(RequestError, match="pooler"):
            probe_depths(data, feature="pooler")
        with pytest.raises(RequestError, match="best"):
            probe_depths(data, recipe="best")
        assert any(scratch.rglob("*.npy"))
    assert not any(scratch.rglob("*.npy"))
    assert part.n_rows == 30
    alone = probe(base, train, dev, feature="mean", recipe="converged", fraction=0.5, seed=4)
    # The fit stops where the gradient is small, and the optimum is flat: rounding moves weights.
    torch.testing.assert_close(part.probes.weight, alone.probes.weight, rtol=0, atol=5e-3)


def test_the_same_seed_twice_is_equal_and_baselines_are_what_they_say(tmp_path):
    base = checkpoint(tmp_path / "base")
    train, dev = rows(tmp_path, n=60), rows(tmp_path, n=21, seed=1)
    one, two = (probe(base, train, dev, seed=7) for _ in range(2))
    assert torch.equal(one.probes.weight, two.probes.weight)
    chance = random_encoder(base, train, dev, feature="mean", recipe="converged", seed=3)
    edited = probe(
        base, train, dev, feature="mean", recipe="converged", seed=3,
        edits=parse("randomize(seed=3)"),
    )  # fmt: skip
    assert chance.rows() == edited.rows()
    part = train.fraction(31)  # one label is commoner by one
    common = int(np.bincount(part.targets).argmax())
    found = majority(part, dev).scores["accuracy"]
    assert found.value == pytest.approx(float((dev.targets == common).mean()))


def test_the_mean_is_the_baseline_of_a_regression(tmp_path):
    train, dev = rows(tmp_path, "regression", n=20), rows(tmp_path, "regression", n=9, seed=1)
    baseline = majority(train, dev)
    assert np.allclose(baseline.predictions, train.targets.mean())
    probed = probe(checkpoint(tmp_path / "base"), train, dev, feature="mean", recipe="converged")
    assert set(probed.depths[0].scores) == set(dev.task.metrics)


def test_bad_requests_are_refused(tmp_path):
    base = checkpoint(tmp_path / "base")
    spans, data = rows(tmp_path, "spans", n=6), rows(tmp_path, n=12)
    with pytest.raises(RequestError, match="one state per text"):
        probe(base, spans, spans)
    with pytest.raises(RequestError, match=r"feature must be one of .* got 'last'"):
        probe(base, data, data, feature="last")
    with pytest.raises(Diverged, match="diverged at step"):
        probe(base, data, data, settings=PAPER.but(learning_rate=1e38))
    (tmp_path / "file").write_text("")
    encoder = load(str(base), head="none")
    encoded = encode_for(encoder, load_tokenizer(str(base)), data)
    with pytest.raises(StorageError, match="can't be stored"):
        cache_states(encoder, encoded, tmp_path / "file")
    assert Seeds.of(1) != Seeds.of(2)
