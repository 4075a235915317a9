"""Which rows: nested, stratified, seeded, and by content."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtome.errors import DataError, RequestError
from microtome.tasks import DataSpec, open_data
from microtome.tasks.sampling import (
    fraction_of,
    held_out,
    limited,
    n_of_fraction,
    order_keys,
    quantile_strata,
)

seeds = st.integers(0, 2**32)
strata = st.lists(st.integers(0, 3), min_size=4, max_size=300).map(np.array)


def splitmix64(state: int) -> int:
    """The published generator, step by step on Python's integers."""
    mask = 2**64 - 1
    z = (state + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


@given(seed=seeds)
def test_the_order_is_splitmix64_of_seed_and_place(seed):
    start = splitmix64(seed)
    assert order_keys(5, seed).tolist() == [splitmix64(place ^ start) for place in range(5)]


def test_splitmix64_gives_its_published_first_number():
    # First output of the reference implementation for seed 1234567.
    assert splitmix64(1234567) == 6457827717110365317


@given(n=st.integers(1, 500), small=st.integers(1, 500), more=st.integers(0, 500), seed=seeds)
def test_a_smaller_limit_is_part_of_a_larger_one_in_file_order(n, small, more, seed):
    few, many = limited(n, small, seed), limited(n, small + more, seed)
    assert set(few) <= set(many)
    assert (np.diff(many) > 0).all()
    assert len(few) == min(small, n)


@given(strata=strata, low=st.floats(0.01, 1), high=st.floats(0.01, 1), seed=seeds)
def test_fractions_are_nested_and_keep_each_labels_share(strata, low, high, seed):
    low, high = sorted((low, high))
    few, many = fraction_of(strata, low, seed), fraction_of(strata, high, seed)
    assert set(few) <= set(many)
    assert (np.diff(few) > 0).all()
    n_strata = len(np.unique(strata))
    for stratum in np.unique(strata):
        share = (strata == stratum).mean()
        found = (strata[many] == stratum).sum()
        # Rounding in a stratum is off by half a row, the cut by half a row of every stratum.
        assert abs(found - share * len(many)) <= 0.5 + 0.5 * n_strata * share + 1e-9


def test_another_seed_picks_other_rows():
    labels = np.arange(1000) % 2
    assert not np.array_equal(fraction_of(labels, 0.1, 0), fraction_of(labels, 0.1, 1))
    assert not np.array_equal(limited(1000, 100, 0), limited(1000, 100, 1))


@pytest.mark.parametrize(("fraction", "n"), [(1, 200), (0.5, 100), (0.001, 1), (2, 2), (200, 200)])
def test_a_fraction_is_all_a_share_or_rows(fraction, n):
    assert n_of_fraction(fraction, 200) == n


@pytest.mark.parametrize("fraction", [0, -0.5, 1.5, 2.5, 201])
def test_other_fractions_are_refused(fraction):
    with pytest.raises(RequestError, match=r"expected .*, got"):
        n_of_fraction(fraction, 200)


def test_a_limit_below_one_row_is_refused():
    with pytest.raises(RequestError, match="at least 1 row, got 0"):
        limited(10, 0, 0)


@given(values=st.lists(st.integers(0, 40), min_size=1, max_size=200))
def test_equal_numbers_share_a_stratum_and_larger_ones_a_later_one(values):
    values = np.array(values, dtype=float)
    strata = quantile_strata(values)
    order = np.argsort(values, kind="stable")
    assert (np.diff(strata[order]) >= 0).all()
    assert all(len(set(strata[values == value])) == 1 for value in values)


texts = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2)), min_size=12, max_size=200)


@settings(max_examples=60)
@given(rows=texts, data=st.data())
def test_the_split_of_own_data_hangs_on_content_not_on_order(rows, data):
    def sides(rows):
        digests = np.array([[splitmix64(text), text] for text, _ in rows], dtype=np.uint64)
        train, dev = held_out(digests, np.array([label for _, label in rows]))
        assert sorted([*train, *dev]) == list(range(len(rows)))
        return {rows[i][0] for i in train}, {rows[i][0] for i in dev}

    train, dev = sides(rows)
    assert not train & dev  # equal texts stay together
    assert sides(data.draw(st.permutations(rows))) == (train, dev)


def test_a_fifth_of_each_label_is_held_out():
    rng = np.random.default_rng(0)
    digests = rng.integers(0, 2**63, size=(1000, 2)).astype(np.uint64)
    labels = np.repeat([0, 1, 2], [700, 290, 10])
    _, dev = held_out(digests, labels)
    assert np.bincount(labels[dev]).tolist() == [140, 58, 2]


def csv_of(path, rows):
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    return open_data(DataSpec(path=path))


def test_a_data_set_can_be_capped_cut_and_split(tmp_path):
    data = csv_of(tmp_path / "a.csv", [(f"text {i}", i % 4 == 0) for i in range(200)])
    part = data.fraction(0.1, seed=3)
    assert len(part) == 20
    assert part.targets.sum() == 5
    rows = list(part.rows())
    assert [row.label for row in rows] == part.targets.tolist()
    assert set(rows) <= set(data.fraction(0.5, seed=3).rows())
    assert len(data.limit(7)) == 7
    assert data.limit(None) is data
    assert data.limit(500) is data
    train, dev = data.held_out()
    assert (len(train), len(dev), dev.targets.sum()) == (160, 40, 10)
    assert train.content_hash != data.content_hash


def test_two_rows_are_too_few_to_hold_one_out(tmp_path):
    with pytest.raises(DataError, match="too few"):
        csv_of(tmp_path / "a.csv", [("x", 0), ("y", 1)]).held_out()


def test_the_content_hash_is_of_rows_and_their_order_not_of_the_file(tmp_path):
    rows = [("a", 0), ("b", 1)]
    one = csv_of(tmp_path / "one.csv", rows)
    two = csv_of(tmp_path / "two.csv", rows)
    assert one.content_hash == two.content_hash
    assert one.content_hash != csv_of(tmp_path / "c.csv", rows[::-1]).content_hash
    assert one.content_hash != csv_of(tmp_path / "d.csv", [("a", 1), ("b", 0)]).content_hash
    assert one.text_hash == csv_of(tmp_path / "e.csv", [("a", 1), ("b", 0)]).text_hash
