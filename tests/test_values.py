"""Laws of heads, patterns of heads, and ranges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtome.errors import RequestError
from microtome.values import (
    LARGEST_NUMBER,
    Head,
    HeadPattern,
    check_layer,
    format_ranges,
    parse_number,
    parse_ranges,
    quoted,
)

numbers = st.integers(0, 300)


def test_ranges_are_inclusive_and_keep_the_written_order():
    assert parse_ranges("0-2,5") == (0, 1, 2, 5)
    assert parse_ranges(" 7 , 3 - 4 ") == (7, 3, 4)
    assert format_ranges((0, 1, 2, 5)) == "0-2,5"
    assert format_ranges((10, 11)) == "10-11"
    assert format_ranges(()) == ""


@given(st.lists(numbers, min_size=1))
def test_ranges_print_and_parse_back_to_the_same_numbers(written):
    assert parse_ranges(format_ranges(written)) == tuple(written)


@given(st.sets(numbers, min_size=1))
def test_a_set_is_written_with_as_few_ranges_as_it_has_gaps(chosen):
    gaps = sum(1 for number in chosen if number + 1 not in chosen)
    assert len(format_ranges(sorted(chosen)).split(",")) == gaps


@pytest.mark.parametrize(
    "text",
    ["", ",", "1,", "-1", "1-", "1-2-3", "5-3", "a", "1.0", "²", "٣", "+1", "1_0", "0x1", "99999"],
)
def test_what_is_no_range_is_refused(text):
    with pytest.raises(RequestError):
        parse_ranges(text)


def test_a_backwards_range_says_how_to_write_it():
    with pytest.raises(RequestError) as caught:
        parse_ranges("5-3")
    assert (caught.value.message, caught.value.hint) == ("range 5-3 runs backwards", "write 3-5")


def test_many_wide_ranges_are_refused_before_they_fill_the_memory():
    wide = f"0-{LARGEST_NUMBER}"
    assert len(parse_ranges(wide)) == LARGEST_NUMBER + 1
    with pytest.raises(RequestError, match="expected at most 10001 numbers, got more"):
        parse_ranges(",".join([wide] * 50_000))


def test_numbers_stop_at_the_largest_one():
    assert parse_number(f"000{LARGEST_NUMBER}") == LARGEST_NUMBER
    for text in (str(LARGEST_NUMBER + 1), "9" * 6000):
        with pytest.raises(RequestError, match="expected a number up to 10000"):
            parse_number(text)


@given(numbers, numbers)
def test_a_head_prints_and_parses_back(layer, head):
    assert Head.parse(str(Head(layer, head))) == Head(layer, head)


def test_head_ten_is_not_head_one():
    assert Head.parse("3.10") != Head.parse("3.1")
    assert Head.parse("3.10") == Head(3, 10)


def test_heads_sort_by_layer_then_head():
    assert sorted([Head(10, 0), Head(2, 11), Head(2, 3)]) == [Head(2, 3), Head(2, 11), Head(10, 0)]


@pytest.mark.parametrize("text", ["3", "3.", ".7", "3.7.1", "3.*", "*.7", "a.b", "-1.0", "3,7", ""])
def test_what_is_no_single_head_is_refused(text):
    with pytest.raises(RequestError):
        Head.parse(text)


def test_negative_heads_can_not_be_made():
    with pytest.raises(RequestError, match="expected a layer from 0 to 10000, got -1"):
        Head(-1, 0)
    with pytest.raises(RequestError, match="expected a head from 0 to 10000, got -1"):
        HeadPattern(None, -1)


@pytest.mark.parametrize("text", ["3.7", "3.*", "*.7", "*.*"])
def test_a_pattern_prints_as_it_was_read(text):
    assert str(HeadPattern.parse(text)) == text


def test_a_star_means_all():
    assert HeadPattern.parse("1.*").expand(2, 3) == (Head(1, 0), Head(1, 1), Head(1, 2))
    assert HeadPattern.parse("*.2").expand(2, 3) == (Head(0, 2), Head(1, 2))
    assert HeadPattern.parse("1.2").expand(2, 3) == (Head(1, 2),)
    assert len(HeadPattern.parse("*.*").expand(2, 3)) == 2 * 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("12.0", "there is no layer 12: the model has layers 0 to 11"),
        ("12.*", "there is no layer 12: the model has layers 0 to 11"),
        ("3.4", "there is no head 4 (3.4): a layer has heads 0 to 3"),
        ("*.4", "there is no head 4 (*.4): a layer has heads 0 to 3"),
    ],
)
def test_a_head_outside_of_the_model_is_named(text, message):
    with pytest.raises(RequestError) as caught:
        HeadPattern.parse(text).expand(12, 4)
    assert caught.value.message == message


def test_the_only_layer_is_named_as_such():
    check_layer(0, 1)
    with pytest.raises(RequestError, match="has layer 0 only"):
        check_layer(1, 1)


@given(st.text(max_size=300))
def test_what_is_quoted_stays_on_one_short_line(text):
    shown = quoted(text)
    assert shown.isprintable()
    assert shown[0] == shown[-1] == '"'
    if len(text) <= 80 and text.isprintable():
        assert shown[1:-1] == text
