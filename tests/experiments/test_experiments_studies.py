"""The claims of head disabling under a true null and under a planted gain (make studies)."""

from __future__ import annotations

import numpy as np
import pytest

from microtome import load_tokenizer
from microtome.experiments.kit.paired_comparison import VariantSweep
from microtome.observe import sweep
from microtome.observe.evaluation import encode_for
from microtome.statistics import max_t
from microtome.tasks import DataSpec, open_training
from microtome.training.finetune import finetune
from microtome.training.recipe import recipe_for

pytestmark = pytest.mark.studies

N_PERMUTATIONS = 200


@pytest.fixture(scope="module")
def stored():
    """Answers of all-MiniLM fine-tuned on micro-sentiment, with each of its heads disabled."""
    train, dev = open_training(DataSpec("micro-sentiment"))
    recipe = recipe_for(train.task).but(epochs=2)
    model = finetune("minilm", train, dev, recipe=recipe, fraction=2000).model
    encoded = encode_for(model, load_tokenizer("minilm"), dev)
    found = sweep(model, encoded, [f"{i}.{j}" for i in range(6) for j in range(12)])
    return dev, found.names, found.baseline.argmax(-1), found.logits.argmax(-1)


def test_labels_permuted_two_hundred_times_promise_nothing(stored):
    """The classes are of equal size, so answering one of them more often gains nothing either."""
    dev, names, baseline, variants = stored
    assert np.ptp(np.bincount(dev.targets)) == 0
    rng = np.random.default_rng(0)
    naive, honest, covered, rejected = [], [], [], []
    for _ in range(N_PERMUTATIONS):
        gold = rng.permutation(dev.targets)
        right = (baseline == gold).astype(float)
        answers = [(answer == gold).astype(float) for answer in variants]
        found = VariantSweep(
            dict(zip(names, answers, strict=True)), right, dev.clusters
        ).selection()
        p_maxt = max_t(np.stack(answers), right, clusters=dev.clusters).p
        naive.append(found["naive_gain"])
        honest.append(found["honest_gain"])
        covered.append(found["honest_low"] <= 0 <= found["honest_high"])
        rejected.append(p_maxt.min() <= 0.05)
    error = np.std(honest) / np.sqrt(N_PERMUTATIONS)
    print(
        f"naive {np.mean(naive):.4f}, honest {np.mean(honest):.4f} ± {error:.4f}, interval holds 0"
        f" in {np.mean(covered):.3f}, max-T rejects in {np.mean(rejected):.3f}"
    )
    assert np.mean(naive) > 0
    assert abs(np.mean(honest)) <= 2 * error
    assert np.mean(covered) >= 0.93
    assert np.mean(rejected) <= 0.08


def test_a_planted_gain_of_four_points_on_1500_rows_is_found():
    rng = np.random.default_rng(1)
    names = [f"0.{i}" for i in range(72)]
    found = 0
    for _ in range(100):
        right = (rng.random(1500) < 0.8).astype(float)
        answers = [np.where(rng.random(1500) < 0.02, 1 - right, right) for _ in names]
        wrong = rng.permutation(np.flatnonzero(right == 0))
        answers[17] = right.copy()
        answers[17][wrong[:60]] = 1.0  # 60 of 1,500 rows
        gain = VariantSweep(dict(zip(names, answers, strict=True)), right, None).selection()
        found += gain["honest_target"] == "0.17" and gain["honest_low"] > 0
    print(f"found in {found} of 100")
    assert found >= 90
