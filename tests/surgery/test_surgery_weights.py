"""Fresh weights: the truncated normal of Singh et al., one stream per layer and part."""

from __future__ import annotations

import math

import pytest
import torch
from scipy import stats

from microtome.surgery.application import stream, truncated_normal_


@pytest.mark.parametrize("std", [0.02, 0.5])
def test_draws_follow_the_truncated_normal(std):
    values = torch.empty(200, 500)
    truncated_normal_(values, std, stream(0, 3, "query"))
    flat = values.flatten().double().numpy()
    n = flat.size
    assert abs(flat).max() <= 2 * std * (1 + 1e-6)  # float32 rounding of the bound itself
    wanted = stats.truncnorm(-2, 2, scale=std)
    assert abs(flat.mean()) < 4 * wanted.std() / math.sqrt(n)
    # The paper's σ = 0.02 cut at 2σ has a standard deviation of 0.0176 (protocol, section 4).
    assert math.isclose(wanted.std(), 0.0176 * std / 0.02, rel_tol=2e-3)
    assert abs(flat.std() / wanted.std() - 1) < 4 / math.sqrt(2 * n)
    assert stats.kstest(flat, wanted.cdf).pvalue > 1e-3


def test_streams_differ_by_seed_layer_and_part_and_repeat():
    def draw(*key):
        values = torch.empty(64)
        truncated_normal_(values, 1.0, stream(*key))
        return values

    assert torch.equal(draw(0, 1, "key"), draw(0, 1, "key"))
    draws = [draw(0, 1, "key"), draw(1, 1, "key"), draw(0, 2, "key"), draw(0, 1, "query")]
    for i, one in enumerate(draws):
        for other in draws[i + 1 :]:
            assert abs(float(torch.corrcoef(torch.stack([one, other]))[0, 1])) < 0.5


def test_drawing_leaves_the_global_random_state_alone():
    before = torch.random.get_rng_state()
    truncated_normal_(torch.empty(10), 1.0, stream(0, 0, "key"))
    assert torch.equal(before, torch.random.get_rng_state())
