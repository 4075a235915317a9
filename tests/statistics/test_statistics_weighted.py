from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats
from sklearn import metrics as official

from microtome.errors import RequestError
from microtome.statistics import (
    accuracy,
    f1,
    matthews,
    mean,
    minus,
    pearson,
    share,
    spearman,
    value_of,
)
from microtome.statistics.weighted import SumMetric


def drawn(seed: int, n: int = 60, n_labels: int = 2):
    """Labels, scores with ties, and how often each row counts."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, n_labels, n)
    predicted = np.where(rng.random(n) < 0.7, gold, rng.integers(0, n_labels, n))
    y = rng.integers(0, 8, n) / 2
    x = np.round(y + rng.normal(size=n), 1)
    counts = np.bincount(rng.integers(0, n, n), minlength=n)
    return predicted, gold, x, y, counts


def untied(values):
    """The same values, no two alike."""
    return values + 1e-6 * np.arange(len(values)) ** 2


@given(some.integers(0, 500))
@settings(max_examples=30)
def test_weights_mean_repeated_rows(seed):
    predicted, gold, x, y, counts = drawn(seed)
    rows = np.repeat(np.arange(len(gold)), counts)
    weights = counts[None].astype(float)
    p, g = predicted[rows], gold[rows]
    expected = [
        (accuracy(predicted, gold), official.accuracy_score(g, p)),
        (f1(predicted, gold), official.f1_score(g, p, zero_division=0)),
        (matthews(predicted, gold), official.matthews_corrcoef(g, p)),
        (pearson(x, y), stats.pearsonr(x[rows], y[rows])[0]),
        (spearman(x, y), stats.spearmanr(x[rows], y[rows])[0]),
        (spearman(untied(x), y), stats.spearmanr(untied(x)[rows], y[rows])[0]),
    ]
    for metric, score in expected:
        assert metric(weights)[0] == pytest.approx(score, abs=1e-9)


def test_matthews_of_three_labels_agrees_with_scikit_learn():
    predicted, gold, *_ = drawn(3, n_labels=3)
    ours = value_of(matthews(predicted, gold, n_labels=3))
    assert ours == pytest.approx(official.matthews_corrcoef(gold, predicted))


def test_f1_of_another_label():
    predicted, gold, *_ = drawn(4)
    ours = value_of(f1(predicted, gold, positive=0))
    assert ours == pytest.approx(official.f1_score(gold, predicted, pos_label=0))


@pytest.mark.parametrize("metric", [f1, matthews, pearson, spearman])
def test_a_constant_answer_scores_0(metric):
    gold = np.array([0, 1, 1, 0, 1])
    assert value_of(metric(np.zeros(5, dtype=int), gold)) == 0
    assert value_of(metric(np.zeros(5, dtype=int), np.zeros(5, dtype=int))) == 0


def test_pearson_of_a_constant_far_from_the_labels_is_0():
    gold = np.array([1.0, 2.0, 4.0])
    assert value_of(pearson(np.full(3, 1234.567), gold)) == 0


@pytest.mark.parametrize("metric", [accuracy, f1, matthews, pearson, spearman])
def test_one_row_is_enough(metric):
    assert 0 <= value_of(metric([1], [1])) <= 1


@pytest.mark.parametrize("metric", [accuracy, f1, matthews, pearson, spearman])
def test_no_rows_and_unequal_rows_are_refused(metric):
    with pytest.raises(RequestError, match="at least 1 row of predictions, got none"):
        metric([], [])
    with pytest.raises(RequestError, match="shape"):
        metric([1, 0], [1])


def test_a_label_that_does_not_exist_is_refused():
    with pytest.raises(RequestError, match="expected labels 0 to 1"):
        matthews([0, 2], [0, 1])


def test_a_score_out_of_range_is_refused():
    with pytest.raises(RequestError, match=r"expected scores from 0 to 1, got 0\.5 to 1\.5"):
        mean([0.5, 1.5])


@given(some.integers(0, 200))
@settings(max_examples=20)
def test_swapping_exchanges_the_answers_of_rows(seed):
    predicted, gold, x, y, _ = drawn(seed)
    rng = np.random.default_rng(seed)
    other_x, other_predicted = rng.permutation(x), rng.permutation(predicted)
    coins = rng.integers(0, 2, size=(3, len(gold))).astype(float)
    for metric, ours, theirs, labels in (
        (matthews, predicted, other_predicted, gold),
        (f1, predicted, other_predicted, gold),
        (pearson, x, other_x, y),
        (spearman, x, other_x, y),
        (spearman, untied(x), other_x + 1e-3, y),
    ):
        got = metric(ours, labels).swapped(metric(theirs, labels), coins)
        for repeat, coin in enumerate(coins.astype(bool)):
            first = value_of(metric(np.where(coin, theirs, ours), labels))
            second = value_of(metric(np.where(coin, ours, theirs), labels))
            assert (got[0][repeat], got[1][repeat]) == pytest.approx((first, second), abs=1e-9)


@pytest.mark.parametrize("metric", [matthews, spearman])
def test_taking_rows_is_scoring_them_alone(metric):
    predicted, gold, *_ = drawn(7)
    rows = np.arange(5, 40)
    alone = value_of(metric(predicted[rows], gold[rows]))
    assert value_of(metric(predicted, gold).take(rows)) == pytest.approx(alone)


@pytest.mark.parametrize(("one", "other"), [(matthews, f1), (spearman, spearman), (f1, spearman)])
def test_a_difference_is_one_score_less_the_other(one, other):
    predicted, gold, *_, counts = drawn(8)
    weights = counts[None].astype(float)
    a, b = one(predicted, gold), other(gold[::-1], gold)
    assert minus(a, b)(weights) == pytest.approx(a(weights) - b(weights))


def test_the_worst_rows_hurt_and_the_best_help():
    predicted, gold, *_ = drawn(9)
    for metric in (accuracy(predicted, gold), f1(predicted, gold), matthews(predicted, gold)):
        assert isinstance(metric, SumMetric)
        sums, score = metric.columns.sum(axis=0), value_of(metric)
        assert (metric.of_sums(sums + metric.worst) <= score).all()
        assert (metric.of_sums(sums + metric.best) >= score).all()


def test_a_share_counts_units_not_rows():
    metric = share([1, 0, 3], [2, 1, 3])
    weights = np.array([[1.0, 1.0, 1.0], [2.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(metric(weights), [4 / 6, 5 / 7, 0.0])
    assert value_of(metric.take(np.array([0, 2]))) == pytest.approx(4 / 5)
    with pytest.raises(RequestError, match="units"):
        share([3], [2])
