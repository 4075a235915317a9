"""The area between a curve and its chord: known figures, straight lines, simulated rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtome.statistics import mean
from microtome.statistics.concavity import absolute_area, areas, signed_area


def test_areas_of_known_figures():
    # A triangle of height 1 over a chord of length 1 has area ½; upside down it counts negative.
    assert signed_area([0, 1, 2], [0, 1, 0]) == pytest.approx(0.5)
    assert signed_area([0, 1, 2], [0, -1, 0]) == pytest.approx(-0.5)
    assert absolute_area([0, 1, 2], [0, -1, 0]) == pytest.approx(0.5)
    # Crossing in the middle: four triangles of base ¼ and height 1.
    crossing = [0, 1, 2, 3, 4], [0, 1, 0, -1, 0]
    assert signed_area(*crossing) == pytest.approx(0)
    assert absolute_area(*crossing) == pytest.approx(0.5)
    # Crossing inside a segment: triangles of base ½ on both sides of x = 1.5.
    assert absolute_area([0, 1, 2, 3], [0, 1, -1, 0]) == pytest.approx(0.5)
    # Places need not be evenly spaced.
    assert signed_area([0, 3, 4], [0, 3, 0]) == pytest.approx(1.5)


@given(
    st.lists(st.floats(-1, 1), min_size=3, max_size=8),
    st.floats(-2, 2),
    st.floats(-2, 2),
)
def test_a_straight_line_added_changes_no_area(y, height, slope):
    x = np.arange(len(y))
    tilted = np.array(y) + height + slope * x
    assert signed_area(x, tilted) == pytest.approx(signed_area(x, y), abs=1e-9)
    assert absolute_area(x, tilted) == pytest.approx(absolute_area(x, y), abs=1e-9)
    fine = np.linspace(0, len(y) - 1, 20_001)
    drawn = np.interp(fine, x, y) - np.interp(fine, [0, len(y) - 1], [y[0], y[-1]])
    assert absolute_area(x, y) == pytest.approx(np.abs(drawn).mean(), abs=1e-3)


def test_the_area_is_paired_over_rows_and_covers():
    """Simulated rows whose true curve is known: the interval holds its area."""
    rng = np.random.default_rng(0)
    chance = np.array([0.9, 0.88, 0.8, 0.6])
    truth = float(signed_area(range(4), chance))
    held = 0
    for _ in range(100):
        luck = rng.random(300)  # a row that is hard is hard at every count
        answers = [mean((luck < p).astype(float)) for p in chance]
        _, signed = areas(range(4), answers)
        held += truth in signed
    assert held >= 90
