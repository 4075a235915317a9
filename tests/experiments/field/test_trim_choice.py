"""The recommended cut's change is honest: simulated, with the truth known."""

from __future__ import annotations

import numpy as np
import pytest

from microtome.experiments.field.trim.choice import Wish, recommended
from support.trimming.judged_rows import judged_rows

N_ROWS, N_CUTS, N_DRAWS = 300, 2, 200
BASE_SCORE = 0.85


def drawn(rng: np.random.Generator, true_change: float):
    """A base that is right in 85 % of the rows, and cuts of which each truly loses as much."""
    base = rng.random(N_ROWS) < BASE_SCORE
    spoilt = 0.05 - true_change / BASE_SCORE
    mended = 0.05 * BASE_SCORE / (1 - BASE_SCORE)
    draws = rng.random((N_CUTS, N_ROWS))
    return base, np.where(base, draws >= spoilt, draws < mended), 0.5


def drawn_equal(rng: np.random.Generator):
    """Every cut answers as the base does."""
    base = rng.random(N_ROWS) < BASE_SCORE
    return base, np.tile(base, (N_CUTS, 1)), 0.5


def drawn_permuted(rng: np.random.Generator):
    """Labels that no answer depends on; cuts differ from the base in a third of their answers."""
    labels, answers = rng.random((2, N_ROWS)) < 0.5
    changed = answers ^ (rng.random((N_CUTS, N_ROWS)) < 1 / 3)
    return answers == labels, changed == labels, 0.5


def recommendations(draw, *, lose: float, n_wanted: int = N_DRAWS, seed: int = 0) -> np.ndarray:
    """delta, low, high, pick_delta of so many recommended cuts, one for each simulated data set."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(4 * n_wanted):
        base, cuts, constant = draw(rng)
        named = {f"keep(0-{i})": (i + 1, cut.astype(float)) for i, cut in enumerate(cuts)}
        cut = recommended(judged_rows(base.astype(float), named, constant), Wish(lose))
        if cut is not None:
            found.append([cut[name] for name in ("delta", "low", "high", "pick_delta")])
        if len(found) == n_wanted:
            break
    assert len(found) == n_wanted
    return np.array(found)


# What may be lost is wide, so that most draws have a recommendation: the law is the same for any.
CASES = {
    "no cut changes anything in truth": (lambda rng: drawn(rng, 0.0), 0.04, 0.0),
    "every cut loses 3 points": (lambda rng: drawn(rng, -0.03), 0.07, -0.03),
    "permuted labels": (drawn_permuted, 0.15, 0.0),
}


@pytest.mark.parametrize("case", CASES)
def test_the_change_of_the_recommended_cut_is_unbiased_and_covered(case):
    draw, lose, truth = CASES[case]
    delta, low, high, picked = recommendations(draw, lose=lose).T
    error = delta.std(ddof=1) / np.sqrt(N_DRAWS)
    assert abs(delta.mean() - truth) < 2 * error
    assert np.mean((low <= truth) & (truth <= high)) >= 0.93
    if case != "permuted labels":  # there the base was picked, too: it has to look learnt
        assert picked.mean() - truth > 3 * error  # the rows that picked the cut flatter it


def test_a_cut_that_equals_the_base_changes_by_nothing():
    delta, low, high, _ = recommendations(drawn_equal, lose=0.05, n_wanted=10).T
    assert (delta == 0).all()
    assert ((low < 0) & (high > 0)).all()


def test_the_scored_rows_have_no_say():
    """Whatever happens on the scoring half, the same cut is recommended."""
    rng = np.random.default_rng(3)
    base, cuts, constant = drawn(rng, 0.0)
    named = {f"keep(0-{i})": (i + 1, cut.astype(float)) for i, cut in enumerate(cuts)}
    rows = judged_rows(base.astype(float), named, constant)
    cut = recommended(rows, Wish(0.1))
    assert cut is not None
    scored = ("value", "value_low", "value_high", "delta", "low", "high")
    spoilt = [{**row, **dict.fromkeys(scored, -0.9)} for row in rows]
    again = recommended(spoilt, Wish(0.1))
    assert again is not None
    assert again["edit"] == cut["edit"]
