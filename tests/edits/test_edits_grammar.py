"""The grammar: print → parse → print is the identity, and errors name the place."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from microtome.edits import (
    Disable,
    Duplicate,
    Edits,
    Extend,
    Keep,
    Order,
    Randomize,
    Reinit,
    Remove,
    Repeat,
    Unshare,
    catalogue,
    parse,
)
from microtome.errors import EditError
from microtome.values import HeadPattern

layers = st.integers(0, 30)
layer_lists = st.lists(layers, min_size=1, max_size=8)
counts = st.integers(1, 10_000)
seeds = st.integers(0, 2**32 - 1)
heads = st.builds(HeadPattern, st.none() | layers, st.none() | layers)
stds = st.floats(min_value=0, max_value=1000, exclude_min=True)


def reinits(**where):
    ways = {"seed": seeds, "std": stds, "parts": st.sampled_from(["weights", "all"])}
    return st.builds(Reinit, **where, **ways)


single_edits = st.one_of(
    st.builds(Extend, counts),
    st.sets(layers, min_size=1).flatmap(
        lambda chosen: st.builds(lambda times: Duplicate(*chosen, times=times), counts)
    ),
    st.builds(Duplicate, first=counts, times=counts),
    st.builds(Duplicate, last=counts),
    st.tuples(layers, layers).map(lambda ends: Repeat(f"{min(ends)}-{max(ends)}")),
    layer_lists.map(lambda listed: Remove(*listed)),
    layer_lists.map(lambda listed: Keep(*listed)),
    layer_lists.map(lambda listed: Order(*listed)),
    reinits(top=counts),
    reinits(bottom=counts),
    layer_lists.map(lambda listed: Reinit(*listed, seed=3, std=0.5)),
    st.builds(Randomize, seeds),
    st.lists(heads, min_size=1, max_size=8).flatmap(
        lambda chosen: st.sampled_from(["uniform", "zero"]).map(
            lambda how: Disable(*chosen, how=how)
        )
    ),
    st.just(Unshare()),
)
sequences = st.lists(single_edits, min_size=1, max_size=4).map(lambda edits: Edits(*edits))
# Text that is nearly an edit finds more than arbitrary text does.
near_values = st.sampled_from(
    ["", "0", "3", "0-2", "5-3", "3.7", "*.1", "3.*", "*", ".", "-", "-1", "1e-5", "0.5"]
    + ["nan", "zero", "all", "²", "(", "=", "\n"]
    + [prefix + "9" * 5000 for prefix in ("", "0-", "-", "3.", "0.")]
)
near_options = st.tuples(
    st.sampled_from(["top", "bottom", "seed", "std", "parts", "first", "last", "times", "how"]),
    near_values,
).map("=".join)
near_calls = st.tuples(
    st.sampled_from([form.name for form in catalogue()]),
    st.lists(near_values | near_options, max_size=3).map(",".join),
).map(lambda call: f"{call[0]}({call[1]})")
near_edits = st.lists(near_calls, max_size=2).map("|".join)


@given(sequences)
def test_printing_then_parsing_gives_the_same_value(edits):
    assert parse(edits.text) == edits
    assert parse(edits.text).text == edits.text


@given(sequences, sequences)
def test_texts_values_and_hashes_are_equal_together(left, right):
    assert (left == right) == (left.text == right.text) == (left.hash == right.hash)


@given(single_edits, single_edits)
def test_single_edits_are_equal_exactly_when_their_texts_are(left, right):
    assert (left == right) == (left.text == right.text)
    if left == right:
        assert hash(left) == hash(right)


@given(st.text(max_size=60) | near_edits)
@example("extend(" + "9" * 10_000 + ")")
@example("disable(" + "9" * 10_000 + ".1)")
@example("reinit(3, std=" + "9" * 10_000 + ")")
@example("reinit(3, std=1e" + "9" * 10_000 + ")")
@example("order(0-" + "9" * 10_000 + ")")
@example("order(" + ",".join(["0-10000"] * 10_000) + ")")
@example("\ud800")
def test_arbitrary_text_gives_edits_or_an_edit_error_of_one_line(text):
    outcome = edits_or_error(text)
    if isinstance(outcome, EditError):
        assert str(outcome).isprintable()
        assert len(str(outcome)) < 600
    else:
        assert parse(outcome.text) == outcome


def edits_or_error(text):
    try:
        return parse(text)
    except EditError as error:
        return error


@given(sequences, st.sampled_from([" ", "\t", "\n", "  \n "]))
def test_white_space_between_the_parts_means_nothing(edits, blank):
    spread = "".join(f"{blank}{c}{blank}" if c in "(),=|" else c for c in edits.text)
    assert parse(spread) == edits
    assert parse(edits.text.replace(" ", "")) == edits


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("extend(15", ': expected ")" at position 10'),
        ("extend(15  ", ': expected ")" at position 10'),
        ("extend 15", ': expected "(" at position 8'),
        ("unshare", ': expected "(" at position 8'),
        ("extend()", ": expected an argument at position 8"),
        ("duplicate(0 2)", ': expected "," or ")" at position 13'),
        ("remove(1,)", ": expected an argument at position 10"),
        ("reinit(top=)", ": expected a value of top at position 12"),
        ("reinit(top=1,top=2)", ": top is given twice at position 14"),
        ("extend(15) extend(16)", ': expected "|" or the end at position 12'),
        ("extend(15) |", ": expected the name of an edit at position 13"),
        ("extend(15, 16)", ': unexpected "16" at position 12'),
        ("unshare(3)", ': unexpected "3" at position 9'),
        ("remove(0–2)", ': unexpected character "–" at position 9'),
        ("reinit(topp=4)", ': unknown option "topp" at position 8'),
        ("remove(0, 5-3)", " at position 11: range 5-3 runs backwards"),
        ("disable(3.7, how=mask)", ' at position 18: how must be uniform or zero, got "mask"'),
        ("disable(3.7, 3)", ' at position 14: expected a head, got "3"'),
        (
            "duplicate(first=0)",
            " at position 17: first must be a whole number from 1 to 10000, got 0",
        ),
        ("extend(3) | duplicate(1,1)", " at position 13: layer 1 is listed twice"),
        (
            "reinit(3, std=nan)",
            ' at position 15: std must be a number above 0, at most 1000, got "nan"',
        ),
    ],
)
def test_an_error_names_the_position_counted_from_one(text, reason):
    with pytest.raises(EditError) as caught:
        parse(text)
    assert caught.value.message == f'malformed edit "{text}"{reason}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extend(3)|extnd(15)", 'unknown edit "extnd" at position 11'),
        ("", "expected an edit, got nothing"),
        (" \n", "expected an edit, got nothing"),
        ("remove(0,\n5", r'malformed edit "remove(0,\n5": expected ")" at position 12'),
    ],
)
def test_an_error_is_one_line(text, message):
    with pytest.raises(EditError) as caught:
        parse(text)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("extend(15", "write extend(COUNT)"),
        ("unshare(3)", "write unshare()"),
        ("reinit(topp=4)", "did you mean top? reinit takes top, bottom, seed, std, parts"),
        ("extend(seed=4)", "extend takes no options"),
        ("head_mask(3.7)", "use disable(LAYER.HEAD)"),
        ("prune_heads(3.7)", "use disable(LAYER.HEAD)"),
    ],
)
def test_an_error_says_what_to_write(text, hint):
    with pytest.raises(EditError) as caught:
        parse(text)
    assert caught.value.hint == hint


def test_an_unknown_edit_names_the_nearest_and_all():
    with pytest.raises(EditError) as caught:
        parse("Extend(15)")
    assert caught.value.hint.startswith("did you mean extend? ")
    for form in catalogue():
        assert form.name in caught.value.hint


def test_the_examples_of_the_catalogue_are_canonical():
    for form in catalogue():
        for text in form.examples:
            assert parse(text).text == text
            assert text.startswith(f"{form.name}(")
            assert [edit.name for edit in parse(text)] == [form.name]


def test_every_option_of_the_catalogue_is_in_its_form():
    for form in catalogue():
        for option in form.options:
            assert f"{option}=" in form.form
