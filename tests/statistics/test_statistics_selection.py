from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score

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
    pearson,
    spearman,
    sweep_gains,
    tango,
)
from microtome.statistics.resampling import tail_of


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
    with pytest.raises(RequestError, match="at least 2 rows or clusters to halve, got 1"):
        halves(1)
    with pytest.raises(RequestError, match="at least 2 rows or clusters to halve, got 1"):
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


def test_a_second_split_is_asked_for_what_the_first_one_picked_and_nothing_else():
    dev, other = sweep(1, gain=0.1), sweep(2, n=500)
    asked = []

    def scored_on(variant):
        asked.append(variant)
        return other[0][variant], other[1]

    found = gain_on_second_split(*dev, scored_on)
    assert asked == [0]
    assert found.variant == naive_gain(*dev).variant == 0
    assert found.gain.value == pytest.approx((other[0][0] - other[1]).mean())
    assert found.gain.n == 500
    assert found.how == "picked on one split, scored on another"


def test_a_second_split_in_metrics():
    rng = np.random.default_rng(3)
    gold = rng.integers(0, 2, 200)
    answers = [np.where(rng.random(200) < p, gold, 1 - gold) for p in (0.6, 0.9, 0.7)]
    metrics, base = [matthews(a, gold) for a in answers], matthews(answers[0], gold)
    clusters = np.arange(200) // 2
    found = gain_on_second_split(metrics, base, lambda i: (metrics[i], base), clusters=clusters)
    expected = paired_bootstrap(metrics[1], base, clusters=clusters, repeats=1000)
    assert (found.variant, found.gain) == (1, expected)


def test_the_mean_gain_over_all_variants():
    variants, base = sweep(gain=0.1)
    found = mean_gain(variants, base)
    assert found.value == pytest.approx(variants.mean() - base.mean())
    rows = (variants - base).mean(axis=0)
    reach = 1.96 * rows.std() / len(rows) ** 0.5
    assert found.low < found.value - 0.9 * reach
    assert found.high > found.value + 0.9 * reach


def answers_of_variants(seed=0, n=90, n_variants=6):
    """Labels and predictions of a baseline and its variants, each a little off the baseline."""
    rng = np.random.default_rng(seed)
    gold = (rng.random(n) < 0.6).astype(int)
    base = np.where(rng.random(n) < 0.75, gold, 1 - gold)
    variants = [np.where(rng.random(n) < 0.1, 1 - base, base) for _ in range(n_variants)]
    return gold, base, variants


def f1_by_definition(labels, predicted, weights):
    """Twice the weight of right ones over that of predicted and of real ones."""
    both, predicted, real = (weights @ ones for ones in (labels * predicted, predicted, labels))
    return 2 * both / (predicted + real)


def slow_f1_gain(gold, base, variants, rows, unseen, weights, f1_of=f1_by_definition):
    """F1 on drawn rows; ``unseen`` are two more, answered right or wrong by all variants."""
    labels = np.r_[gold[rows], 0, 1]
    counts = np.r_[np.ones(len(rows)), weights]

    def score(predicted, right):
        return f1_of(labels, np.r_[predicted[rows], [0, 1] if right else [1, 0]], counts)

    ours = [score(predicted, unseen == "best") for predicted in variants]
    return np.mean(ours) - score(base, unseen == "worst")


def scikit_learns_f1(labels, predicted, weights):
    return f1_score(labels, predicted, sample_weight=weights)


def test_the_mean_gain_in_f1_equals_a_slow_bootstrap_that_agrees_with_scikit_learn():
    """Low ends with a little of a row that all variants get wrong, high ends with a right one."""
    gold, base, variants = answers_of_variants()
    rng, low, high = np.random.default_rng(7), [], []
    for draw in range(600):
        rows = rng.integers(0, len(gold), len(gold))
        drawn = (gold, base, variants, rows)
        weights = rng.exponential(size=2)
        low.append(slow_f1_gain(*drawn, "worst", weights))
        high.append(slow_f1_gain(*drawn, "best", weights))
        if draw < 10:  # scikit-learn is too slow for all of them
            theirs = [slow_f1_gain(*drawn, u, weights, scikit_learns_f1) for u in ("worst", "best")]
            assert [low[-1], high[-1]] == pytest.approx(theirs)
    found = mean_gain([f1(v, gold) for v in variants], f1(base, gold))
    plain = np.mean([f1_score(gold, v) for v in variants]) - f1_score(gold, base)
    assert found.value == pytest.approx(plain)
    tail = tail_of(0.95, len(gold))
    # 600 draws leave an end of this width uncertain by some 7 % of it.
    width = found.high - found.low
    assert found.low == pytest.approx(np.quantile(low, tail), abs=0.07 * width)
    assert found.high == pytest.approx(np.quantile(high, 1 - tail), abs=0.07 * width)


@pytest.mark.parametrize("clustered", [False, True])
def test_the_mean_gain_in_spearman_equals_a_slow_bootstrap_with_scipy(clustered):
    rng = np.random.default_rng(2)
    gold = rng.integers(0, 11, 60) / 2
    base = gold + rng.normal(0, 1.5, 60)
    variants = [base + rng.normal(0, 1, 60) for _ in range(4)]
    clusters = np.arange(60) // 3 if clustered else np.arange(60)
    drawn = []
    for _ in range(600):
        units = rng.integers(0, clusters[-1] + 1, clusters[-1] + 1)
        rows = np.concatenate([np.flatnonzero(clusters == unit) for unit in units])
        score = [stats.spearmanr(v[rows], gold[rows])[0] for v in (*variants, base)]
        drawn.append(np.mean(score[:-1]) - score[-1])
    metrics = [spearman(v, gold) for v in variants]
    found = mean_gain(metrics, spearman(base, gold), clusters=clusters)
    score = [stats.spearmanr(v, gold)[0] for v in (*variants, base)]
    assert found.value == pytest.approx(np.mean(score[:-1]) - score[-1])
    tail, width = tail_of(0.95, clusters[-1] + 1), found.high - found.low
    assert found.low == pytest.approx(np.quantile(drawn, tail), abs=0.1 * width)
    assert found.high == pytest.approx(np.quantile(drawn, 1 - tail), abs=0.1 * width)


def test_the_mean_gain_of_metrics_that_are_means_is_that_of_scores():
    variants, base = sweep(gain=0.1)
    by_scores = mean_gain(variants, base)
    by_metrics = mean_gain([mean(v) for v in variants], mean(base))
    assert by_metrics.value == pytest.approx(by_scores.value)
    width = by_scores.high - by_scores.low
    assert by_metrics.low == pytest.approx(by_scores.low, abs=0.1 * width)
    assert by_metrics.high == pytest.approx(by_scores.high, abs=0.1 * width)


@pytest.mark.parametrize("metric", [f1, matthews, pearson, spearman])
@pytest.mark.parametrize("clustered", [False, True])
def test_many_gains_at_once_are_those_of_single_comparisons(metric, clustered):
    gold, base, variants = answers_of_variants(3)
    if metric in (pearson, spearman):
        rng = np.random.default_rng(4)
        base = base + rng.normal(0, 0.5, len(gold))
        variants = [base + rng.normal(0, 0.2, len(gold)) for _ in variants]
    clusters = np.arange(len(gold)) // 2 if clustered else None
    metrics, baseline = [metric(v, gold) for v in variants], metric(base, gold)
    found = sweep_gains(metrics, baseline, clusters=clusters)
    singly = [paired_bootstrap(one, baseline, clusters=clusters) for one in metrics]
    together = mean_gain(metrics, baseline, clusters=clusters)
    for ours, expected in zip((*found.each, found.mean), (*singly, together), strict=True):
        for end in ("value", "low", "high", "n"):
            assert getattr(ours, end) == pytest.approx(getattr(expected, end), abs=1e-12)


def test_the_same_seed_gives_the_same_gain():
    data = sweep(gain=0.03)
    assert honest_gain(*data, seed=5) == honest_gain(*data, seed=5)
    assert honest_gain(*data, seed=5) != honest_gain(*data, seed=6)


def test_scores_and_metrics_do_not_mix():
    variants, base = sweep(n=10)
    with pytest.raises(RequestError, match="expected a metric of the baseline"):
        honest_gain([mean(v) for v in variants], base)
    with pytest.raises(RequestError, match="expected a metric of each variant"):
        honest_gain(variants, mean(base))
