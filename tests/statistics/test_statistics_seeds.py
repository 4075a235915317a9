from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats
from statsmodels.stats.power import TTestIndPower

from microtome.errors import RequestError
from microtome.statistics import (
    INSEPARABLE,
    compare_seeds,
    detectable_difference,
    flip_spread,
    over_seeds,
)

SCORES = some.lists(some.integers(0, 1000).map(lambda k: k / 1000), min_size=3, max_size=10)


@given(SCORES)
def test_three_seeds_and_more_get_students_interval(scores):
    found = over_seeds(scores)
    assert found.interval is not None
    assert found.remark == ""
    if len(set(scores)) > 1:
        low, high = stats.t.interval(0.95, len(scores) - 1, np.mean(scores), stats.sem(scores))
        assert (found.interval.low, found.interval.high) == pytest.approx((low, high))


@pytest.mark.parametrize("scores", [[0.9], [0.9, 0.92]])
def test_fewer_seeds_get_no_interval_and_say_why(scores):
    found = over_seeds(scores)
    assert found.interval is None
    assert found.remark == "can't separate the edit from the seed"
    assert found.value == pytest.approx(np.mean(scores))


@given(SCORES, SCORES)
@settings(max_examples=30)
def test_arms_are_compared_by_welch_with_fewer_degrees_of_freedom(edited, base):
    found = compare_seeds(edited, base)
    assert found.interval is not None
    if len(set(edited)) > 1 and len(set(base)) > 1:  # scipy warns of arms without spread
        reference = stats.ttest_ind(edited, base, equal_var=False)
        freedom = (reference.df + min(len(edited), len(base)) - 1) / 2
        p = 2 * stats.t.sf(abs(reference.statistic), freedom)
        assert found.p == pytest.approx(p, abs=1e-9)
        half = (found.interval.high - found.interval.low) / 2
        welch = reference.confidence_interval()
        error = (welch.high - welch.low) / 2 / stats.t.ppf(0.975, reference.df)
        assert half == pytest.approx(error * stats.t.ppf(0.975, freedom))


def test_arms_without_spread():
    assert compare_seeds([0.5] * 3, [0.5] * 3).p == 1
    assert compare_seeds([0.6] * 3, [0.5] * 3).p == 0


def test_one_run_each_cannot_be_told_from_the_seed():
    found = compare_seeds([0.92], [0.90])
    assert (found.interval, found.p, found.detectable) == (None, None, None)
    assert found.remark.startswith(INSEPARABLE)
    # (1.96 + 0.84) · sqrt(2) standard deviations
    assert "4.0 times" in found.remark


def test_a_known_spread_makes_the_detectable_difference_a_number():
    found = compare_seeds([0.92], [0.90], seed_spread=0.005)
    assert found.detectable == pytest.approx((1.95996 + 0.84162) * 0.005 * 2**0.5, rel=1e-4)
    assert "2.0 points" in found.remark


def test_the_base_seeds_give_the_spread_for_a_single_edited_run():
    base = [0.90, 0.91, 0.92]
    found = compare_seeds([0.95], base)
    assert found.interval is None
    assert found.detectable == pytest.approx(detectable_difference(0.01, 1, 3))


@pytest.mark.parametrize("n", [2, 3, 5, 20])
def test_the_detectable_difference_agrees_with_statsmodels(n):
    reference = TTestIndPower().solve_power(nobs1=n, alpha=0.05, power=0.8)
    assert detectable_difference(1.0, n, n) == pytest.approx(reference, rel=1e-4)


def test_more_seeds_detect_less():
    detectable = [detectable_difference(0.01, n, n) for n in (2, 3, 5, 10, 100)]
    assert detectable == sorted(detectable, reverse=True)


def test_rows_that_differ_give_a_floor_for_the_spread():
    # 20 of 100 rows differ: as if 40 rows fell by a coin, so a score has variance 40/4 / 100².
    one = np.r_[np.ones(10), np.zeros(10), np.ones(80)]
    other = np.r_[np.zeros(10), np.ones(10), np.ones(80)]
    assert flip_spread(one, other) == pytest.approx((0.2 / 200) ** 0.5)
    rng = np.random.default_rng(0)
    runs = rng.random((4000, 100)) + np.r_[np.zeros(40), np.ones(60)] > 0.5
    expected = np.std(runs.mean(axis=1))
    floors = [flip_spread(runs[i], runs[i + 1]) for i in range(0, 400, 2)]
    assert np.mean(floors) == pytest.approx(expected, rel=0.05)


def test_no_seeds_are_refused():
    with pytest.raises(RequestError, match="at least 1 row of seeds, got none"):
        over_seeds([])
    with pytest.raises(RequestError, match="at least 1 seed on each side"):
        detectable_difference(0.01, 0, 3)
    with pytest.raises(RequestError, match="same rows"):
        flip_spread([1], [1, 0])
