from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some
from statsmodels.stats.proportion import proportion_confint

from microtome.errors import RequestError
from microtome.statistics import accuracy_interval, wilson
from microtome.statistics.intervals import Interval


@given(some.integers(1, 5000).flatmap(lambda n: some.tuples(some.integers(0, n), some.just(n))))
def test_wilson_agrees_with_statsmodels(right_of_n):
    n_right, n = right_of_n
    low, high = proportion_confint(n_right, n, method="wilson")
    ours = wilson(n_right, n)
    assert ours.value == n_right / n
    assert (ours.low, ours.high) == (pytest.approx(low, abs=1e-12), pytest.approx(high, abs=1e-12))


@given(some.integers(1, 400).flatmap(lambda n: some.tuples(some.integers(0, n), some.just(n))))
def test_wilson_holds_its_score_and_stays_a_share(right_of_n):
    interval = wilson(*right_of_n)
    assert 0 <= interval.low <= interval.value <= interval.high <= 1


def test_a_higher_level_gives_a_wider_interval():
    narrow, wide = wilson(70, 100, level=0.9), wilson(70, 100, level=0.99)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_an_interval_contains_its_ends():
    assert 0.5 in Interval(0.6, 0.5, 0.7, 10)
    assert 0.71 not in Interval(0.6, 0.5, 0.7, 10)


@pytest.mark.parametrize(("n_right", "n"), [(0, 0), (3, 2), (-1, 5)])
def test_impossible_counts_are_refused(n_right, n):
    with pytest.raises(RequestError, match=f"got {n_right} of {n}"):
        wilson(n_right, n)


def test_a_level_outside_0_and_1_is_refused():
    with pytest.raises(RequestError, match="level must be between 0 and 1, got 95"):
        wilson(1, 2, level=95)


def test_accuracy_without_clusters_is_wilson():
    assert accuracy_interval([1, 1, 0, 1]) == wilson(3, 4)


def test_accuracy_by_cluster_is_wider_where_clusters_stand_and_fall_together():
    right = [1] * 50 + [0] * 50
    clusters = [i // 10 for i in range(100)]
    alone, together = accuracy_interval(right), accuracy_interval(right, clusters=clusters)
    assert together.high - together.low > 1.5 * (alone.high - alone.low)


@pytest.mark.parametrize("bad", [[], [0.5, 1.0], [[1, 0]], [float("nan")]])
def test_accuracy_of_anything_but_right_and_wrong_rows_is_refused(bad):
    with pytest.raises(RequestError):
        accuracy_interval(bad)
