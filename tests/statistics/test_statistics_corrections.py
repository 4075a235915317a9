from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from statsmodels.stats.multitest import multipletests

from microtome.errors import RequestError
from microtome.statistics import (
    benjamini_hochberg,
    f1,
    holm,
    matthews,
    max_t,
    max_t_of_metrics,
    mcnemar,
    mean,
    pearson,
    smallest_gain,
    spearman,
    swap_permutation,
)

P_VALUES = some.lists(some.floats(0, 1), min_size=1, max_size=30)


@given(P_VALUES)
@settings(max_examples=40)
def test_holm_and_benjamini_hochberg_agree_with_statsmodels(p):
    assert np.allclose(holm(p), multipletests(p, method="holm")[1])
    assert np.allclose(benjamini_hochberg(p), multipletests(p, method="fdr_bh")[1])


@given(P_VALUES)
def test_corrections_only_raise_p_and_keep_its_order(p):
    raw, strict, mild = np.array(p), holm(p), benjamini_hochberg(p)
    assert (raw <= mild + 1e-12).all()
    assert (mild <= strict + 1e-12).all()
    assert (strict <= 1).all()
    order = np.argsort(raw, kind="stable")
    assert (np.diff(strict[order]) >= 0).all()
    assert (np.diff(mild[order]) >= -1e-12).all()


def test_what_is_no_p_value_is_refused():
    with pytest.raises(RequestError, match=r"expected a list of p-values from 0 to 1, got 1\.5"):
        holm([0.5, 1.5])


def sweep(seed: int = 0, n: int = 200, n_variants: int = 12, gain: int = 0):
    rng = np.random.default_rng(seed)
    base = (rng.random(n) < 0.8).astype(float)
    variants = np.where(rng.random((n_variants, n)) < 0.05, 1 - base, base)
    variants[0, np.flatnonzero(base == 0)[:gain]] = 1.0
    return variants, base


def all_flips_p(variants: np.ndarray, base: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Max-T over every one of the 2^n sign patterns, variants stepped down one by one."""
    differences = (variants - base) / scale[:, None]
    signs = np.array(list(itertools.product((-1, 1), repeat=len(base))))
    chance, seen = np.abs(signs @ differences.T), np.abs(differences.sum(axis=1))
    order = np.argsort(-seen, kind="stable")
    p, highest = np.empty(len(seen)), 0.0
    for place, variant in enumerate(order):
        as_far = chance[:, order[place:]].max(axis=1) >= seen[variant] - 1e-9
        highest = max(highest, as_far.mean())
        p[variant] = highest
    return p


@pytest.mark.parametrize("scaling", ["moderated", "full", "none"])
def test_max_t_agrees_with_all_sign_patterns(scaling):
    rng = np.random.default_rng(5)
    base = np.zeros(12)
    variants = rng.normal(loc=0.3, size=(4, 12))
    squares = (variants**2).sum(axis=1)
    scale = {
        "moderated": np.sqrt(squares + np.median(squares)),
        "full": np.sqrt(squares),
        "none": np.ones(4),
    }[scaling]
    ours = max_t(variants, base, scaling=scaling, repeats=20_000).p
    assert ours == pytest.approx(all_flips_p(variants, base, scale), abs=0.02)


def test_max_t_of_one_variant_is_the_swap_permutation():
    variants, base = sweep(gain=5)
    alone = max_t(variants[:1], base, repeats=20_000).p[0]
    assert alone == pytest.approx(
        swap_permutation(mean(variants[0]), mean(base), repeats=20_000), abs=0.01
    )
    exact = mcnemar((variants[0] > base).sum(), (variants[0] < base).sum())
    assert alone == pytest.approx(float(exact), abs=0.01)


def test_max_t_is_no_smaller_than_each_variant_alone():
    variants, base = sweep(gain=6)
    together = max_t(variants, base, repeats=4000).p
    alone = [max_t(variant[None], base, repeats=4000).p[0] for variant in variants]
    assert (together >= np.array(alone) - 0.02).all()
    assert (together <= 1).all()


def test_copies_of_a_variant_cost_nothing_under_max_t_but_much_under_holm():
    variants, base = sweep(gain=8)
    copies = np.repeat(variants[:1], 50, axis=0)
    once, often = max_t(variants[:1], base).p[0], max_t(copies, base).p[0]
    assert often == once
    p = mcnemar((copies > base).sum(axis=1), (copies < base).sum(axis=1))
    assert holm(p)[0] == pytest.approx(min(1, 50 * p[0]))


def test_max_t_ignores_the_order_of_variants_and_repeats_by_seed():
    variants, base = sweep(gain=4)
    p = max_t(variants, base, seed=1).p
    assert max_t(variants, base, seed=1).p == pytest.approx(p)
    assert max_t(variants[::-1], base, seed=1).p == pytest.approx(p[::-1])


def test_a_cluster_keeps_one_sign():
    variants, base = sweep(n=100)
    doubled = max_t(np.tile(variants, 2), np.tile(base, 2), clusters=np.tile(np.arange(100), 2))
    assert doubled.p == pytest.approx(max_t(variants, base).p)


def test_max_t_of_metrics_on_means_is_max_t():
    variants, base = sweep(gain=8)
    by_rows = max_t(variants, base, repeats=8000)
    by_metric = max_t_of_metrics([mean(v) for v in variants], mean(base), repeats=8000)
    # Scales drawn from the flips break ties that exact ones leave.
    assert by_metric.p == pytest.approx(by_rows.p, abs=0.1)
    assert by_metric.needed == pytest.approx(by_rows.needed, rel=0.1)


@pytest.mark.parametrize("metric", [f1, pearson, spearman])
def test_max_t_also_gives_each_variants_own_p(metric):
    """The same coins swap the rows of one pair or of all of them."""
    rng = np.random.default_rng(5)
    gold = rng.integers(0, 2, 80)
    base = np.where(rng.random(80) < 0.7, gold, 1 - gold)
    variants = [np.where(rng.random(80) < 0.4, gold, base) for _ in range(3)]
    if metric in (pearson, spearman):
        base, variants = base + rng.random(80), [v + rng.random(80) for v in variants]
    metrics, baseline = [metric(v, gold) for v in variants], metric(base, gold)
    found = max_t_of_metrics(metrics, baseline, clusters=np.arange(80) // 2)
    singly = [swap_permutation(m, baseline, clusters=np.arange(80) // 2) for m in metrics]
    assert found.p_single == pytest.approx(singly, abs=0.03 if metric is not spearman else 1e-12)
    assert (found.p_single <= found.p + 1e-12).all()


def test_max_t_of_right_and_wrong_rows_gives_each_variants_own_p():
    variants, base = sweep(gain=8)
    found = max_t(variants, base, repeats=8000)
    gained, lost = ((variants > base).sum(axis=1), (variants < base).sum(axis=1))
    assert found.p_single == pytest.approx(mcnemar(gained, lost), abs=0.03)


def test_max_t_finds_a_real_gain_in_matthews():
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, 300)
    base = np.where(rng.random(300) < 0.7, gold, 1 - gold)
    better = np.where(rng.random(300) < 0.5, gold, base)
    noise = [np.where(rng.random(300) < 0.03, 1 - base, base) for _ in range(8)]
    p = max_t_of_metrics(
        [matthews(v, gold) for v in (better, *noise)], matthews(base, gold), repeats=500
    ).p
    assert p[0] < 0.01
    assert p[1:].min() > 0.01


def test_variants_that_change_nothing_are_never_significant():
    base = np.ones(10)
    found = max_t(np.ones((3, 10)), base)
    assert (found.p == 1).all()


@given(some.integers(1, 2000), some.integers(1, 500))
def test_the_smallest_gain_is_just_significant(n_rows, n_comparisons):
    gained = round(smallest_gain(n_rows, n_comparisons) * n_rows)
    assert mcnemar(gained, 0) * n_comparisons <= 0.05
    assert mcnemar(gained - 1, 0) * n_comparisons > 0.05


def test_the_smallest_gain_of_144_heads_on_408_rows():
    # 2 · 2^-13 · 144 = 0.035; with 12 rows it is 0.07.
    assert smallest_gain(408, 144) == 13 / 408


@pytest.mark.parametrize("scaling", ["moderated", "full", "none"])
def test_a_variant_with_the_smallest_max_t_gain_is_significant_and_one_row_less_is_not(scaling):
    # The gain goes to a variant of its own and hardly moves the bar that the others set.
    variants, base = sweep(n=400, n_variants=60)
    gained = round(max_t(variants, base, scaling=scaling).smallest_gain * 400)
    for more, significant in ((3, True), (-3, False)):
        planted = np.vstack([variants, base])
        planted[-1, np.flatnonzero(base == 0)[: gained + more]] = 1.0
        assert (max_t(planted, base, scaling=scaling).p[-1] <= 0.05) == significant


def test_what_was_needed_decides():
    variants, base = sweep(seed=3, n_variants=30, gain=30)
    found = max_t(variants, base)
    gains = np.abs((variants - base).mean(axis=1))
    # Single-step: whatever passes its bar is significant.
    assert (found.p[gains > found.needed + 1e-9] <= 0.051).all()
    assert gains[0] > found.needed[0]


@pytest.mark.parametrize(
    ("variants", "base"),
    [
        (np.ones(3), np.ones(3)),
        (np.ones((2, 3)), np.ones(4)),
        (np.ones((0, 3)), np.ones(3)),
        ([[np.nan]], [1]),
    ],
)
def test_sweeps_that_do_not_fit_are_refused(variants, base):
    with pytest.raises(RequestError):
        max_t(variants, base)
    with pytest.raises(RequestError):
        max_t_of_metrics([], mean([1]))
