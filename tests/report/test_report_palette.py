"""Everything drawn or written can be read, in light and in dark."""

from __future__ import annotations

import colorsys
import itertools

import pytest

from microtome.report.palette import DARK, LIGHT, N_SERIES, N_STEPS, PENS, contrast, luminance


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # WCAG's known near miss


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_text_has_a_contrast_of_at_least_4_5(colors):
    for name in ("ink", "soft", *(f"s{i}" for i in range(N_SERIES))):
        assert contrast(colors[name], colors["paper"]) >= 4.5, name
    for kind, step in itertools.product("qd", range(N_STEPS)):
        assert contrast(colors[f"{kind}{step}"], colors[f"{kind}{step}t"]) >= 4.5, (kind, step)


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_the_sequential_map_grows_lighter_all_the_way(colors):
    steps = [luminance(colors[f"q{step}"]) for step in range(N_STEPS)]
    assert steps == sorted(steps)


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_the_diverging_map_is_neutral_at_0_blue_below_and_orange_above(colors):
    def hue_and_strength(step):
        red, green, blue = (int(colors[f"d{step}"][i : i + 2], 16) / 255 for i in (1, 3, 5))
        hue, _, _ = colorsys.rgb_to_hls(red, green, blue)
        return 360 * hue, max(red, green, blue) - min(red, green, blue)

    middle = N_STEPS // 2
    assert hue_and_strength(middle)[1] < 0.05
    for step in range(middle):
        hue, strength = hue_and_strength(step)
        assert 195 < hue < 230
        assert strength > hue_and_strength(step + 1)[1] - 0.12
    for step in range(middle + 1, N_STEPS):
        assert 15 < hue_and_strength(step)[0] < 40


def test_every_pen_uses_colours_that_exist():
    for pen in PENS.values():
        assert {pen.fill, pen.stroke} - {""} <= LIGHT.keys() == DARK.keys()
