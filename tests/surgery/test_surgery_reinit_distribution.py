"""What reinit() leaves in a model: the paper's truncated normal, in the six projections alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from microtome import parse
from support.tiny import tiny_model

PROJECTIONS = (
    "attention.self.query", "attention.self.key", "attention.self.value",
    "attention.output.dense", "intermediate.dense", "output.dense",
)  # fmt: skip


@pytest.fixture(scope="module")
def pair():
    model = tiny_model("bert", hidden_size=128, intermediate_size=256)
    return model.state_dict(), parse("reinit(top=2, seed=11)")(model).state_dict()


def test_weights_pass_the_distribution_test(pair):
    _, after = pair
    law = stats.truncnorm(-2, 2, scale=0.02)
    drawn = []
    for layer in (1, 2):
        for path in PROJECTIONS:
            values = after[f"bert.encoder.layer.{layer}.{path}.weight"].double().numpy().ravel()
            n = values.size
            assert np.abs(values).max() <= 0.04 * (1 + 1e-6)  # float32 rounds the bound itself
            assert abs(values.mean()) < 4 * law.std() / n**0.5
            # The variance of a sample varies by (kurtosis − 1)/n around its own.
            kurtosis = float(law.stats(moments="k")) + 3
            assert abs(values.var() / law.var() - 1) < 4 * ((kurtosis - 1) / n) ** 0.5
            assert stats.kstest(values, law.cdf).pvalue > 1e-3
            drawn.append(values[:10_000])
    correlations = np.corrcoef(drawn[:4]) - np.eye(4)
    assert np.abs(correlations).max() < 0.05  # every part has a stream of its own


def test_nothing_else_changes(pair):
    before, after = pair
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {
        f"bert.encoder.layer.{layer}.{path}.weight" for layer in (1, 2) for path in PROJECTIONS
    }
