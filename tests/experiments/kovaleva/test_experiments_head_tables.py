"""Mean changes over texts, tested for all heads at once: the level, a real change, clusters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from microtome import statistics as st
from microtome.experiments.kit.head_tables import p_of_mean

SAMPLES = 200
HEADS = (6, 8)


def skewed(rng, n_texts):
    """Differences whose mean is 0: small losses in most texts, a large gain in a few."""
    common = rng.exponential(size=(n_texts, 1, 1)) ** 2 - 2.0
    single = rng.exponential(size=(n_texts, *HEADS)) ** 2 - 2.0
    loudness = np.geomspace(0.1, 1.0, HEADS[0] * HEADS[1]).reshape(HEADS)
    return loudness * (0.5 * common + single)


def most_found_by_chance():
    """A test of 5 % finds more in 1 of 1,000 studies."""
    return float(binom.ppf(0.999, SAMPLES, 0.05)) / SAMPLES


@pytest.mark.parametrize("n_texts", [5, 15, 60])
def test_skewed_changes_whose_mean_is_zero_are_hardly_ever_found(n_texts):
    found = {"bootstrap": [], "sign flips": []}
    for sample in range(SAMPLES):
        changes = skewed(np.random.default_rng([n_texts, sample]), n_texts)
        found["bootstrap"].append(p_of_mean(changes, seed=sample).min() <= 0.05)
        if n_texts == 15:
            flat = changes.reshape(n_texts, -1)
            flipped = st.max_t(flat.T, np.zeros(n_texts), repeats=200).p
            found["sign flips"].append(flipped.min() <= 0.05)
    assert np.mean(found["bootstrap"]) <= most_found_by_chance()
    if n_texts == 15:  # sign flips, the way it was, are too sure of the losses
        assert np.mean(found["sign flips"]) > most_found_by_chance()


def test_a_change_is_found_in_either_direction_and_only_in_its_head():
    rng = np.random.default_rng(0)
    changes = skewed(rng, 60)
    changes[:, 2, 3] += 4 * changes[:, 2, 3].std()
    changes[:, 4, 1] -= 4 * changes[:, 4, 1].std()
    p = p_of_mean(changes)
    assert p[2, 3] <= 0.01
    assert p[4, 1] <= 0.01
    assert (p <= 0.05).sum() == 2


def test_texts_of_a_cluster_count_as_one_and_texts_without_a_number_not_at_all():
    changes = skewed(np.random.default_rng(1), 20)
    alone = p_of_mean(changes)
    doubled = p_of_mean(np.repeat(changes, 2, axis=0), clusters=np.repeat(np.arange(20), 2))
    np.testing.assert_array_equal(doubled, alone)
    with_gaps = np.concatenate([changes, np.full((3, *HEADS), np.nan)])
    np.testing.assert_array_equal(p_of_mean(with_gaps), alone)


def test_nothing_that_changes_has_p_1_and_a_single_text_has_none():
    assert (p_of_mean(np.zeros((9, *HEADS))) == 1).all()
    assert np.isnan(p_of_mean(skewed(np.random.default_rng(2), 1))).all()
    assert np.isnan(p_of_mean(np.full((4, *HEADS), np.nan))).all()
