from __future__ import annotations

import numpy as np
import pytest

from microtome.errors import RequestError
from microtome.statistics import (
    Interval,
    f1,
    gain_on_second_split,
    halves,
    honest_choice,
    honest_gain,
    matthews,
    mean,
    mean_gain,
    naive_gain,
    paired_bootstrap,
    spearman,
    tango,
)


def sweep(seed: int = 0, n: int = 300, n_variants: int = 20, gain: float = 0.0):
    rng = np.random.default_rng(seed)
    base = (rng.random(n) < 0.8).astype(float)
    chance = np.where(base == 1, 0.02 / 0.8, 0.02 / 0.2)
    variants = np.where(rng.random((n_variants, n)) < chance, 1 - base, base)
    variants[0] = np.where((base == 0) & (rng.random(n) < gain / 0.2), 1.0, variants[0])
    return variants, base


def test_halves_are_halves():
    split = halves(101, n_splits=40)
    assert split.shape == (40, 101)
    assert (split.sum(axis=1) == 50).all()
    assert len(np.unique(split, axis=0)) == 40
    assert split.mean(axis=0) == pytest.approx(np.full(101, 0.5), abs=0.35)


def test_halves_keep_clusters_together():
    clusters = np.repeat(np.arange(9), np.arange(1, 10))
    split = halves(len(clusters), clusters=clusters, n_splits=20)
    for half in split:
        assert all(len(set(half[clusters == c])) == 1 for c in range(9))
        assert len(set(clusters[half])) == 4


def test_one_row_or_one_cluster_cannot_be_halved():
    with pytest.raises(RequestError, match="at least 2 wanted"):
        halves(1)
    with pytest.raises(RequestError, match="at least 2 wanted"):
        halves(5, clusters=[7] * 5)


def test_the_honest_gain_is_mean_and_median_ends_of_the_halves_written_out():
    variants, base = sweep(gain=0.05)
    values, lows, highs = [], [], []
    for half in halves(300, n_splits=30, seed=4):
        best = np.argmax(variants[:, half].mean(axis=1).round(9))
        difference = (variants[best] - base)[~half]
        low, high = tango((difference > 0).sum(), (difference < 0).sum(), 150, level=0.975)
        values.append(difference.mean())
        lows.append(low)
        highs.append(high)
    found = honest_gain(variants, base, n_splits=30, seed=4)
    expected = (np.mean(values), np.median(lows), np.median(highs))
    assert (found.gain.value, found.gain.low, found.gain.high) == pytest.approx(expected)
    assert found.gain.n == 300
    assert found.n_splits == 30


def test_any_choice_goes_the_same_way_as_the_best_variant():
    variants, base = sweep(gain=0.05)

    def choose(rows):
        return int(np.argmax(variants[:, rows].mean(axis=1).round(9)))

    def compare(variant, rows):
        difference = (variants[variant] - base)[rows]
        low, high = tango((difference > 0).sum(), (difference < 0).sum(), len(rows), level=0.975)
        return Interval(difference.mean(), float(low), float(high), len(rows))

    by_callback = honest_choice(choose, compare, 300, seed=2)
    by_matrix = honest_gain(variants, base, seed=2)
    assert by_callback.picks == by_matrix.picks
    assert by_callback.gain.low == pytest.approx(by_matrix.gain.low)
    assert by_callback.gain.value == pytest.approx(by_matrix.gain.value)


def test_choosing_never_sees_the_rows_that_are_scored():
    seen = []

    def choose(rows):
        seen.append(set(rows))
        return "anything"

    def compare(variant, rows):
        assert variant == "anything"
        assert seen[-1].isdisjoint(rows)
        assert len(seen[-1]) + len(rows) == 21
        return Interval(0.0, 0.0, 0.0, len(rows))

    assert honest_choice(choose, compare, 21, n_splits=5).picks == (("anything", 1.0),)


def test_metrics_of_means_give_what_scores_give():
    variants, base = sweep(n_variants=5, gain=0.06)
    by_scores = honest_gain(variants, base, n_splits=20)
    by_metrics = honest_gain([mean(v) for v in variants], mean(base), n_splits=20)
    assert by_metrics.picks == by_scores.picks
    assert by_metrics.gain.value == pytest.approx(by_scores.gain.value)
    # 150 rows of which some 10 change: the bootstrap's ends lie a row or two outside Tango's.
    assert by_metrics.gain.low == pytest.approx(by_scores.gain.low, abs=0.02)
    assert by_metrics.gain.high == pytest.approx(by_scores.gain.high, abs=0.02)


@pytest.mark.parametrize("metric", [f1, matthews, spearman])
def test_a_large_gain_in_any_metric_is_found(metric):
    rng = np.random.default_rng(1)
    gold = rng.integers(0, 2, 400)
    base = np.where(rng.random(400) < 0.7, gold, 1 - gold)
    better = np.where(rng.random(400) < 0.6, gold, base)
    noise = [np.where(rng.random(400) < 0.05, 1 - base, base) for _ in range(4)]
    variants = [metric(v, gold) for v in (*noise, better)]
    found = honest_gain(variants, metric(base, gold), n_splits=10)
    assert found.picks == ((4, 1.0),)
    assert found.gain.low > 0


def test_partial_scores_and_clusters_use_the_bootstrap():
    variants, base = sweep(gain=0.1)
    partly = honest_gain(variants * 0.9, base * 0.9, n_splits=10)
    clusters = np.arange(300) // 3
    clustered = honest_gain(variants, base, clusters=clusters, n_splits=10)
    for found in (partly, clustered):
        assert found.gain.low < found.gain.value < found.gain.high
        assert found.gain.low > 0


def test_the_papers_way_looks_better_than_the_honest_one_where_nothing_gains():
    naive, honest = zip(
        *(
            (naive_gain(*data).gain.value, honest_gain(*data, n_splits=20).gain.value)
            for data in (sweep(seed) for seed in range(30))
        ),
        strict=True,
    )
    assert np.mean(naive) > 0.01
    assert abs(np.mean(honest)) < 0.006


def test_the_papers_way_is_named_as_what_it_is():
    variants, base = sweep(gain=0.1)
    found = naive_gain(variants, base)
    assert found.how == "picked and scored on the same rows"
    assert found.variant == 0
    assert found.gain.value == pytest.approx((variants[0] - base).mean())


def test_a_second_split_is_scored_with_what_the_first_one_picked():
    dev, other = sweep(1, gain=0.1), sweep(2, n=500)
    found = gain_on_second_split(dev, other)
    assert found.variant == naive_gain(*dev).variant == 0
    assert found.gain.value == pytest.approx((other[0][0] - other[1]).mean())
    assert found.gain.n == 500


def test_a_second_split_in_metrics():
    rng = np.random.default_rng(3)
    gold = rng.integers(0, 2, 200)
    answers = [np.where(rng.random(200) < p, gold, 1 - gold) for p in (0.6, 0.9, 0.7)]
    metrics, base = [matthews(a, gold) for a in answers], matthews(answers[0], gold)
    found = gain_on_second_split((metrics, base), (metrics, base))
    expected = paired_bootstrap(metrics[1], base, repeats=1000)
    assert (found.variant, found.gain) == (1, expected)


def test_splits_with_other_variants_are_refused():
    with pytest.raises(RequestError, match="the same variants wanted"):
        gain_on_second_split(sweep(n_variants=3), sweep(n_variants=4))


def test_the_mean_gain_over_all_variants():
    variants, base = sweep(gain=0.1)
    found = mean_gain(variants, base)
    assert found.value == pytest.approx(variants.mean() - base.mean())
    rows = (variants - base).mean(axis=0)
    reach = 1.96 * rows.std() / len(rows) ** 0.5
    assert found.low < found.value - 0.9 * reach
    assert found.high > found.value + 0.9 * reach


def test_the_same_seed_gives_the_same_gain():
    data = sweep(gain=0.03)
    assert honest_gain(*data, seed=5) == honest_gain(*data, seed=5)
    assert honest_gain(*data, seed=5) != honest_gain(*data, seed=6)


def test_scores_and_metrics_do_not_mix():
    variants, base = sweep(n=10)
    with pytest.raises(RequestError, match="metric of the baseline wanted"):
        honest_gain([mean(v) for v in variants], base)
    with pytest.raises(RequestError, match="metric of each variant wanted"):
        honest_gain(variants, mean(base))
