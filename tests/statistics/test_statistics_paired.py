from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats
from scipy.optimize import minimize_scalar
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar

from microtome.errors import RequestError
from microtome.statistics import (
    compare_accuracy,
    compare_metric,
    matthews,
    mcnemar,
    mean,
    paired_bootstrap,
    spearman,
    swap_permutation,
    tango,
)

COUNTS = some.integers(0, 60)


@given(COUNTS, COUNTS)
@settings(max_examples=40)
def test_mcnemar_agrees_with_statsmodels(gained, lost):
    table = [[10, gained], [lost, 20]]
    assert mcnemar(gained, lost) == pytest.approx(reference_mcnemar(table, exact=True).pvalue)


@given(COUNTS, COUNTS)
@settings(max_examples=40)
def test_mid_p_counts_the_observed_table_half(gained, lost):
    fewer, changed = min(gained, lost), gained + lost
    tail = stats.binom.cdf(fewer, changed, 0.5) - stats.binom.pmf(fewer, changed, 0.5) / 2
    assert mcnemar(gained, lost, mid_p=True) == pytest.approx(min(1, 2 * tail))
    assert mcnemar(gained, lost, mid_p=True) <= mcnemar(gained, lost)


def test_mcnemar_works_on_arrays():
    assert mcnemar([5, 0, 3], [0, 0, 3]) == pytest.approx([2 / 32, 1, 1])


def score_by_likelihood(gained: int, lost: int, n: int, difference: float) -> float:
    """Tango's score with the share lost found by maximising the likelihood numerically."""
    lowest, highest = max(0.0, -difference), (1 - difference) / 2

    def against(share_lost: float) -> float:
        shares = np.array([share_lost + difference, share_lost, 1 - 2 * share_lost - difference])
        counts = np.array([gained, lost, n - gained - lost])
        return -float((counts * np.log(np.maximum(shares, 1e-300))).sum())

    lost_share = minimize_scalar(
        against, bounds=(lowest, highest), method="bounded", options={"xatol": 1e-10}
    ).x
    variance = n * (2 * lost_share + difference * (1 - difference))
    return (gained - lost - n * difference) / variance**0.5


@pytest.mark.parametrize(
    ("gained", "lost", "n"), [(9, 4, 408), (1, 12, 100), (30, 30, 277), (5, 1, 20), (2, 40, 1500)]
)
def test_tangos_ends_are_where_the_score_is_1_96(gained, lost, n):
    low, high = tango(gained, lost, n)
    assert score_by_likelihood(gained, lost, n, float(low)) == pytest.approx(1.96, abs=2e-3)
    assert score_by_likelihood(gained, lost, n, float(high)) == pytest.approx(-1.96, abs=2e-3)


@given(some.integers(0, 30), some.integers(0, 30), some.integers(0, 300))
@settings(max_examples=40)
def test_tango_holds_the_difference_and_mirrors(gained, lost, unchanged):
    n = gained + lost + unchanged
    if n == 0:
        return
    low, high = tango(gained, lost, n)
    assert -1 <= low <= (gained - lost) / n <= high <= 1
    assert tango(lost, gained, n) == pytest.approx((-high, -low), abs=1e-9)


def test_tango_without_any_change_is_wilson_of_no_event():
    # Both have their end where n·d/(1 - d) = 1.96².
    low, high = tango(0, 0, 100)
    z2 = 1.959963985**2
    assert high == pytest.approx(z2 / (100 + z2))
    assert low == pytest.approx(-high)


def pair(n: int = 400, changed: float = 0.1):
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, n)
    base = np.where(rng.random(n) < 0.8, gold, 1 - gold)
    variant = np.where(rng.random(n) < changed, gold, base)
    return variant, base, gold


def test_accuracies_are_compared_by_mcnemar_and_tango():
    variant, base, gold = pair()
    right, base_right = variant == gold, base == gold
    found = compare_accuracy(right, base_right)
    gained, lost = int((right & ~base_right).sum()), int((~right & base_right).sum())
    assert found.test == "exact McNemar"
    assert found.p == mcnemar(gained, lost)
    assert found.difference.value == pytest.approx(right.mean() - base_right.mean())
    assert (found.difference.low, found.difference.high) == tango(gained, lost, 400)


def test_clusters_turn_the_comparison_into_swaps():
    variant, base, gold = pair(changed=0.5)
    found = compare_accuracy(variant == gold, base == gold, clusters=np.arange(400) // 4)
    assert found.test == "paired swap permutation"
    assert 0 < found.p < 0.01
    assert 0 not in found.difference


def test_swapping_accuracy_is_mcnemar():
    variant, base, gold = pair(changed=0.04)
    right, base_right = (variant == gold).astype(float), (base == gold).astype(float)
    exact = mcnemar((right > base_right).sum(), (right < base_right).sum())
    swaps = swap_permutation(mean(right), mean(base_right), repeats=20_000)
    assert swaps == pytest.approx(float(exact), abs=0.01)


def test_swapping_spearman_agrees_with_scipy():
    rng = np.random.default_rng(1)
    gold = rng.normal(size=60)
    base = gold + rng.normal(size=60)
    variant = base + 0.7 * rng.normal(size=60)

    def difference(a, b):
        return stats.spearmanr(a, gold)[0] - stats.spearmanr(b, gold)[0]

    reference = stats.permutation_test(
        (variant, base),
        difference,
        permutation_type="samples",
        n_resamples=500,
        vectorized=False,
        rng=np.random.default_rng(2),
    ).pvalue
    ours = swap_permutation(spearman(variant, gold), spearman(base, gold), repeats=4000)
    assert ours == pytest.approx(reference, abs=0.09)


@pytest.mark.parametrize("metric", [matthews, spearman])
def test_equal_answers_differ_by_nothing(metric):
    variant, _, gold = pair(100)
    found = compare_metric(metric(variant, gold), metric(variant, gold), repeats=200)
    assert found.p == 1
    assert found.difference.value == 0
    assert 0 in found.difference


@pytest.mark.parametrize("metric", [matthews, spearman])
def test_exchanging_the_models_mirrors_the_difference(metric):
    variant, base, gold = pair()
    a, b = metric(variant, gold), metric(base, gold)
    one, other = paired_bootstrap(a, b), paired_bootstrap(b, a)
    assert (one.value, one.low, one.high) == pytest.approx(
        (-other.value, -other.high, -other.low), abs=0.01
    )
    assert swap_permutation(a, b) == pytest.approx(swap_permutation(b, a), abs=0.03)


def test_pairing_makes_the_interval_narrow():
    variant, base, gold = pair(changed=0.02)
    paired = paired_bootstrap(matthews(variant, gold), matthews(base, gold))
    mixed = np.random.default_rng(3).permutation(400)
    unpaired = paired_bootstrap(matthews(variant, gold), matthews(base[mixed], gold[mixed]))
    assert paired.high - paired.low < 0.5 * (unpaired.high - unpaired.low)


@given(some.integers(0, 50))
@settings(max_examples=20)
def test_p_values_are_shares(seed):
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 2, 30)
    a, b = (matthews(rng.integers(0, 2, 30), gold) for _ in range(2))
    assert 0 < swap_permutation(a, b, repeats=50) <= 1


def test_other_rows_are_refused():
    with pytest.raises(RequestError, match="same rows of variant and baseline, got 2 and 3"):
        compare_metric(mean([1, 0]), mean([1, 0, 1]))
    with pytest.raises(RequestError, match="answers to the same rows, got 2 and 3"):
        compare_accuracy([1, 0], [1, 0, 1])
    with pytest.raises(RequestError, match="expected answers 0 and 1"):
        compare_accuracy([0.5], [1])
