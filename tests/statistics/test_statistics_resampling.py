from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats

from microtome.errors import RequestError
from microtome.statistics import (
    SumMetric,
    bootstrap,
    f1,
    matthews,
    mean,
    pearson,
    resampling,
    spearman,
)
from microtome.statistics.resampling import Units, draw_counts, draw_sums, tail_of


def rows(n: int = 300):
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, n)
    return np.where(rng.random(n) < 0.85, gold, 1 - gold), gold


@pytest.mark.parametrize("metric", [f1, matthews, pearson, spearman])
def test_a_seed_gives_the_same_interval_again(metric):
    made = metric(*rows())
    assert bootstrap(made, seed=3) == bootstrap(made, seed=3)
    assert bootstrap(made, seed=3) != bootstrap(made, seed=4)


def test_the_order_of_rows_does_not_matter_to_counted_metrics():
    predicted, gold = rows()
    mixed = np.random.default_rng(1).permutation(len(gold))
    assert bootstrap(matthews(predicted, gold)) == bootstrap(
        matthews(predicted[mixed], gold[mixed])
    )


@pytest.mark.parametrize("metric", [pearson, spearman])
def test_the_order_of_rows_matters_little_to_others(metric):
    rng = np.random.default_rng(2)
    y = rng.normal(size=200)
    x, mixed = y + rng.normal(size=200), rng.permutation(200)
    one, other = bootstrap(metric(x, y)), bootstrap(metric(x[mixed], y[mixed]))
    assert one.low == pytest.approx(other.low, abs=0.02)
    assert one.high == pytest.approx(other.high, abs=0.02)


@pytest.mark.parametrize("metric", [matthews, spearman])
def test_clusters_of_one_row_are_rows(metric):
    made = metric(*rows())
    names = [f"row {i}" for i in range(made.n_rows)]
    assert bootstrap(made, clusters=names) == bootstrap(made)


@pytest.mark.parametrize("metric", [matthews, spearman])
def test_doubled_rows_in_clusters_say_no_more_than_the_rows_once(metric):
    predicted, gold = rows(200)
    once = bootstrap(metric(predicted, gold))
    twice = metric(np.tile(predicted, 2), np.tile(gold, 2))
    by_pair = bootstrap(twice, clusters=np.tile(np.arange(200), 2))
    taken_for_independent = bootstrap(twice)
    width = once.high - once.low
    assert by_pair.high - by_pair.low == pytest.approx(width, rel=0.15)
    assert taken_for_independent.high - taken_for_independent.low < 0.8 * width


def test_the_interval_of_a_large_mean_is_the_normal_one():
    scores = np.random.default_rng(3).random(4_000)
    interval = bootstrap(mean(scores))
    reach = 1.96 * scores.std() / 4_000**0.5
    assert interval.high - interval.low == pytest.approx(2 * reach, rel=0.08)
    assert interval.value == pytest.approx(scores.mean())


def test_spearman_agrees_with_scipys_bootstrap():
    rng = np.random.default_rng(4)
    y = rng.normal(size=300)
    x = y + rng.normal(size=300)
    reference = stats.bootstrap(
        (x, y),
        lambda a, b: stats.spearmanr(a, b)[0],
        paired=True,
        vectorized=False,
        n_resamples=400,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    ours = bootstrap(spearman(x, y))
    assert (ours.low, ours.high) == pytest.approx((reference.low, reference.high), abs=0.03)


@given(some.integers(1, 40), some.integers(0, 100))
@settings(max_examples=40)
def test_the_interval_holds_the_score(n, seed):
    rng = np.random.default_rng(seed)
    predicted, gold = rng.integers(0, 2, n), rng.integers(0, 2, n)
    for metric in (f1, matthews, pearson, spearman):
        interval = bootstrap(metric(predicted, gold), repeats=100)
        assert -1 <= interval.low <= interval.value <= interval.high <= 1
        assert interval.n == n


@pytest.mark.parametrize("n", [1, 50, 400])
def test_a_perfect_score_leaves_room_for_the_exact_limit(n):
    gold = np.arange(n) % 2
    for metric in (mean(np.ones(n)), f1(gold, gold), matthews(gold, gold)):
        assert bootstrap(metric).low < 1 - min(2 / n, 0.3)
    # No wrong row of n: the exact 97.5 % limit of the error is 1 - 0.025^(1/n).
    low = bootstrap(mean(np.ones(400)), repeats=20_000).low
    assert low == pytest.approx(0.025 ** (1 / 400), abs=0.001)


def test_counts_are_draws_with_replacement():
    counts = draw_counts(50, 4000, np.random.default_rng(5))
    assert (counts.sum(axis=1) == 50).all()
    # Each count is binomial(50, 1/50): mean 1, variance 0.98.
    assert counts.mean(axis=0) == pytest.approx(np.ones(50), abs=0.08)
    assert counts.var(axis=0) == pytest.approx(np.full(50, 0.98), abs=0.15)


def test_alike_rows_drawn_as_counts_spread_like_rows_drawn_one_by_one(monkeypatch):
    columns = np.repeat(np.eye(3), (10, 60, 130), axis=0)
    as_kinds = draw_sums(columns, np.random.default_rng(6), 4000)
    monkeypatch.setattr(resampling, "kinds_of_rows", lambda rows: (rows, np.ones(len(rows))))
    one_by_one = draw_sums(columns, np.random.default_rng(6), 4000)
    assert as_kinds.mean(axis=0) == pytest.approx(one_by_one.mean(axis=0), rel=0.02)
    assert np.cov(as_kinds.T) == pytest.approx(np.cov(one_by_one.T), abs=4)


def test_memory_is_cut_into_chunks_without_changing_the_answer(monkeypatch):
    made = spearman(*rows(100))
    at_once = bootstrap(made, repeats=300)
    monkeypatch.setattr(resampling, "CHUNK", 1)
    assert list(resampling.chunk_sizes(3, 100)) == [1, 1, 1]
    assert bootstrap(made, repeats=300) == at_once


def test_few_units_cut_less_off():
    tails = [tail_of(0.95, n) for n in (2, 5, 30, 10_000)]
    assert tails == sorted(tails)
    assert tails[-1] == pytest.approx(0.025, rel=0.01)


def test_clusters_that_do_not_fit_are_refused():
    with pytest.raises(RequestError, match="expected one cluster for each of"):
        bootstrap(mean([1.0, 0.0]), clusters=[1, 2, 3])
    with pytest.raises(RequestError, match="expected at least 1 row, got none"):
        Units.of(None, 0)


def test_a_row_that_holds_many_answers_is_like_a_cluster():
    rng = np.random.default_rng(8)
    sizes = rng.integers(5, 30, 80)
    accuracy_of = rng.beta(4, 1, 80)
    right = np.concatenate([rng.random(n) < p for n, p in zip(sizes, accuracy_of, strict=True)])
    clusters = np.repeat(np.arange(80), sizes)
    counts = np.bincount(clusters, right)
    one_row_per_cluster = SumMetric(
        np.stack([counts, sizes], axis=1).astype(float),
        lambda sums: sums[:, 0] / sums[:, 1],
        worst=np.array([[0.0, 1.0]]),
        best=np.array([[1.0, 1.0]]),
    )
    by_cluster = bootstrap(mean(right), clusters=clusters)
    added_up = bootstrap(one_row_per_cluster)
    assert (added_up.low, added_up.high) == pytest.approx((by_cluster.low, by_cluster.high))
