"""Values become text that can be read and can't act."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtome.report.csvs import csv_bytes, guarded, unguarded
from microtome.report.curves import draw_curve, nice_ticks
from microtome.report.drawing import Label, Outline, Style
from microtome.report.text import column_texts, percents, plain, shortened, width_of
from microtome.views import Curve, Series


@pytest.mark.parametrize("char", ["\u202e", "\u2066", "\x00", "\x1b", "\x9b", "\u2028", "\ud800"])
def test_acting_characters_are_spelled_out(char):
    assert plain(f"a{char}b") == f"a\\u{ord(char):04x}b"


@given(st.text(st.characters(codec="utf-8")))
def test_plain_text_is_valid_xml_text_and_a_fixed_point(text):
    import xml.dom.minidom
    from html import escape

    shown = plain(text)
    xml.dom.minidom.parseString(f"<t>{escape(shown)}</t>")
    assert plain(shown) == shown


def test_readable_text_stays_as_it_is():
    for text in ("mrpc", "naïve", "שלום", "👩‍🔬", "a & b < c", "\\u202e"):
        assert plain(text) == text


@given(st.text())
def test_a_guarded_text_never_starts_a_formula_and_comes_back(text):
    assert not guarded(text).startswith(("=", "+", "-", "@", "\t", "\r"))
    assert unguarded(guarded(text)) == text


def test_numbers_in_csv_are_never_guarded():
    assert csv_bytes(("a", "b"), [(-0.5, "-0.5")]) == b"a,b\r\n-0.5,'-0.5\r\n"


@given(st.floats(-1, 1))
def test_percents_round_to_a_tenth_of_a_point(value):
    shown = float(percents(value, plus=True).replace("−", "-"))
    assert math.isclose(shown, 100 * value, abs_tol=0.0500001)


def test_columns_share_their_digits_and_missing_is_not_zero():
    assert column_texts([0.5, None, math.nan, 0.0001]) == ["0.500", "–", "–", "<0.001"]
    assert column_texts([1234567, 12]) == ["1,234,567", "12"]
    assert column_texts([0.02, -0.013], percent=True, plus=True) == ["+2.0", "−1.3"]
    assert column_texts([True, "x"]) == ["yes", "x"]


def test_whole_numbers_have_no_decimals():
    assert column_texts([400.0, 1500.0, None]) == ["400", "1,500", "–"]
    assert column_texts([1.0, 0.1, 400.0]) == ["1.000", "0.100", "400"]  # sizes of a training
    assert column_texts([1.0, 1.52, 2.0]) == ["1.00", "1.52", "2.00"]
    assert column_texts([400.0, 12.5]) == ["400.0", "12.5"]
    assert column_texts([1.0, 0.5], percent=True) == ["100.0", "50.0"]


def test_an_axis_of_shares_ends_at_100_whatever_the_intervals():
    one = Series("s", (0.0, 1.0), (0.3, 0.9), (-0.2, 0.7), (0.6, 1.3))
    drawing = draw_curve(Curve("c", "x", "y", (one,)), Style(400))
    ticks = {mark.text for mark in drawing.marks if isinstance(mark, Label)}
    assert {"0", "100"} <= ticks
    assert "120" not in ticks
    ends = [
        y for m in drawing.marks if isinstance(m, Outline) and m.pen == "grid" for _, y in m.points
    ]
    (band,) = [m for m in drawing.marks if isinstance(m, Outline) and m.pen == "band0"]
    assert all(min(ends) <= y <= max(ends) for _, y in band.points)


def test_the_interval_of_a_single_point_is_a_line_from_end_to_end():
    """A band of one point has no width, and wouldn't be seen."""
    one = Series("one", (2.0,), (0.5,), (0.4,), (0.7,))
    drawing = draw_curve(Curve("c", "x", "y", (one, Series("other", (3.0,), (0.6,)))), Style(400))
    lines = [m for m in drawing.marks if isinstance(m, Outline) and m.pen == "line0"]
    (whisker,) = [m for m in lines if m.points[0][1] != m.points[1][1]]  # the legend's is level
    (x0, low), (x1, high) = whisker.points
    assert x0 == x1
    ticks = {m.text: m.y for m in drawing.marks if isinstance(m, Label) and m.text.isdigit()}
    assert (low - high) / (ticks["50"] - ticks["60"]) == pytest.approx(3)  # 40 to 70 percent


@given(st.text(max_size=60), st.floats(10, 300))
def test_a_shortened_text_fits_its_room(text, room):
    short = shortened(text, room, 12)
    assert short == text or width_of(short, 12) <= max(room, width_of("…", 12))


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(1, 12))
def test_ticks_enclose_the_range_in_equal_steps(low, span, n):
    ticks = nice_ticks(low, low + span, n)
    step = ticks[1] - ticks[0]
    slack = 1e-6 * max(abs(low), span)
    assert ticks[0] <= low + slack
    assert ticks[-1] >= low + span - slack
    assert all(math.isclose(b - a, step, rel_tol=1e-3, abs_tol=slack) for a, b in pairwise(ticks))
    assert len(ticks) <= n + 3
