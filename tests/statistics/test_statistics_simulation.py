"""A small version of studies/statistics_simulation.py: a broken interval fails it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from microtome import statistics as st

STUDIES = Path(__file__).resolve().parents[2] / "studies"
REPEATS = 150


@pytest.fixture(scope="module")
def study():
    sys.path.insert(0, str(STUDIES))
    yield importlib.import_module("statistics_simulation")
    sys.path.remove(str(STUDIES))


def missed_at_most(repeats: int) -> float:
    """True coverage 0.93 stays above this in all but 1 of 10,000 studies."""
    from scipy.stats import binom

    return float(binom.ppf(1e-4, repeats, 0.93)) / repeats


@pytest.mark.parametrize(
    ("part", "settings"),
    [
        ("wilson_cells", ("n=408 p=0.9", "n=1500 p=0.7")),
        ("table_cells", ("n=50 positive=0.5 sens=0.9 spec=0.9", "n=100 positive=0.5 sens=0.98")),
        ("mean_cells", ("n=300",)),
        ("cluster_cells", ("clusters=35", "clusters=50")),
        ("seed_cells", ("seeds=3",)),
        ("tango_cells", ("n=408 changed=0.02", "n=100 changed=0.15")),
        ("difference_cells", ("n=408 changed=0.02",)),
        ("correlation_cells", ("n=100 noise=normal 0.7",)),
    ],
)
def test_intervals_cover(study, part, settings):
    module = study.one if hasattr(study.one, part) else study.pairs
    cells = [c for c in getattr(module, part)() if c.setting.startswith(settings)]
    assert cells
    for cell in cells:
        assert study.cover(cell, REPEATS).covered >= missed_at_most(REPEATS), cell.setting


def test_the_study_can_fail(study):
    """An interval of half the width is caught."""

    def half(rng: np.random.Generator) -> st.Interval:
        found = st.wilson(int(rng.binomial(400, 0.8)), 400)
        reach = (found.high - found.low) / 4
        return st.Interval(found.value, found.value - reach, found.value + reach, 400)

    line = study.cover(study.Cell("half a Wilson", "", 0.8, half), REPEATS)
    assert line.covered < missed_at_most(REPEATS)
    assert not line.passed


def test_nothing_is_found_where_nothing_is(study):
    corrected = {r.what: r for r in study.correction_rates(200, 0.06, 60, alike=True)}
    assert corrected["max-T rejects"].value <= 0.2  # 12 of 60; 0.05 gives that once in 10,000
    assert corrected["McNemar uncorrected rejects"].value > 0.3
    rates = {r.what: r.value for r in study.honest_rates(200, 0.06, False, 40)}
    assert rates["honest interval holds 0"] >= 0.8
    assert rates["papers' mean gain, points"] > 1
    assert abs(rates["mean honest gain, points"]) < 1


def test_a_planted_gain_is_found(study):
    rates = {r.what: r.value for r in study.found_rates(1500, 0.02, 0.04, 25)}
    assert rates["honest interval above 0"] >= 0.8
    assert rates["honest interval holds the gain"] >= 0.8
