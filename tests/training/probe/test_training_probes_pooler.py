"""Probes on the pooler: the pre-trained one, and one trained at every depth as alone."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from microtome import load
from microtome.errors import RequestError
from microtome.models import load_tokenizer
from microtome.observe.evaluation import encode_for
from microtome.training.finetune.examples import Batches
from microtome.training.optimisation import rate_factor
from microtome.training.probe.probes import collect, probe, probe_depths
from microtome.training.probe.states import cache_states
from microtome.training.recipe import Recipe, Seeds
from support.training_rows import checkpoint, rows


def test_the_pooler_feature_is_the_pretrained_pooler(tmp_path):
    base = checkpoint(tmp_path / "base", "bert", "none")
    encoder, dataset = load(str(base)), rows(tmp_path, n=6)
    encoded = encode_for(encoder, load_tokenizer(str(base)), dataset)
    cached = cache_states(encoder, encoded, tmp_path / "states", features=("pooler",))
    batch = {"input_ids": torch.from_numpy(encoded.row(2).astype(np.int64))[None]}
    with torch.no_grad():
        theirs = encoder(**batch).pooler_output[0]
    np.testing.assert_allclose(cached["pooler"][3, 2], theirs, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_a_trained_pooler_is_trained_at_every_depth_as_alone(family, tmp_path):
    """Against plain modules: a pooler and a classifier per depth, each with its own AdamW."""
    base = checkpoint(tmp_path / "base", family, "none")
    train, dev = rows(tmp_path, n=40), rows(tmp_path, n=12, seed=1)
    recipe = Recipe(learning_rate=1e-3, batch_size=8, epochs=2)
    with collect(base, train, dev, features=("trained-pooler",)) as data:
        found = probe_depths(data, feature="trained-pooler", settings=recipe, seed=5)
        states = {name: np.array(own["trained-pooler"]) for name, own in
                  (("train", data.train_states), ("dev", data.dev_states))}  # fmt: skip
    encoder = load(str(base))
    pooler = encoder.pooler if family == "albert" else encoder.pooler.dense
    seeds, batches = Seeds.of(5), Batches.of(40, recipe)
    for depth in range(4):
        torch.manual_seed(0)
        own = copy.deepcopy(pooler)
        head = torch.nn.Linear(own.out_features, 2)
        generator = torch.Generator().manual_seed(seeds.init)
        with torch.no_grad():
            head.weight.copy_(0.02 * torch.randn(own.out_features, 2, generator=generator).T)
            head.bias.zero_()
        decayed, plain = [own.weight, head.weight], [own.bias, head.bias]
        groups = [{"params": decayed}, {"params": plain, "weight_decay": 0.0}]
        adamw = torch.optim.AdamW(groups, lr=1e-3, weight_decay=recipe.weight_decay)
        inputs = torch.from_numpy(states["train"][depth])
        for step in range(batches.n_steps):
            chosen = batches.rows_of(step, seeds.data)
            logits = head(own(inputs[chosen]).tanh())
            wanted = torch.from_numpy(train.targets[chosen].astype(np.int64))
            torch.nn.functional.cross_entropy(logits, wanted).backward()
            torch.nn.utils.clip_grad_norm_([*decayed, *plain], recipe.clip)
            for group in adamw.param_groups:
                group["lr"] = 1e-3 * rate_factor(step, batches.n_steps, recipe.warmup)
            adamw.step()
            adamw.zero_grad()
        ours = found.probes
        torch.testing.assert_close(
            ours.pooler.weight[depth].T, own.weight.detach(), rtol=1e-4, atol=1e-5
        )
        torch.testing.assert_close(ours.weight[depth].T, head.weight.detach(), rtol=1e-4, atol=1e-5)
        with torch.no_grad():
            alone = head(own(torch.from_numpy(states["dev"][depth])).tanh()).argmax(1).numpy()
        assert (found.depths[depth].predictions == alone).all()
    assert not torch.equal(found.probes.pooler.weight[0].T, pooler.weight)  # it was trained


def test_a_trained_pooler_has_no_single_minimum(tmp_path):
    base = checkpoint(tmp_path / "base", "bert", "none")
    data = rows(tmp_path, n=12)
    with pytest.raises(RequestError, match="recipe must be paper for the feature trained-pooler"):
        probe(base, data, data, feature="trained-pooler", recipe="converged")


@pytest.mark.parametrize("family", ["distilbert", "electra", "modernbert"])
def test_a_family_without_a_pooler_says_so(family, tmp_path):
    base = checkpoint(tmp_path / "base", family)
    data = rows(tmp_path, n=6)
    with pytest.raises(RequestError, match="has no pooler; take cls or mean"):
        probe(base, data, data, feature="pooler")
    with pytest.raises(RequestError, match="has no pooler; take cls or mean"):
        probe(base, data, data, feature="trained-pooler")


def test_albert_pools_with_its_own_pooler(tmp_path):
    base = checkpoint(tmp_path / "base", "albert", "none")
    data = rows(tmp_path, n=12)
    probed = probe(base, data, data, feature="pooler", recipe="converged")
    encoder = load(str(base))
    encoded = encode_for(encoder, load_tokenizer(str(base)), data)
    batch = {"input_ids": torch.from_numpy(encoded.row(0).astype(np.int64))[None]}
    cached = cache_states(encoder, encoded, tmp_path / "states", features=("pooler",))
    with torch.no_grad():
        theirs = encoder(**batch).pooler_output[0]
    np.testing.assert_allclose(cached["pooler"][3, 0], theirs, atol=1e-5)
    assert len(probed.depths) == 4
