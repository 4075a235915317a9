"""Rows and masks: nothing is lost, and the shares are what they should be."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from microtome.training.mlm.rows import RowOrder, Tokens, cut, make_batch

TOKENS = Tokens(cls=2, sep=3, mask=4, first_ordinary=5, n_vocabulary=100, full_stop=7)


def stream_of(n: int) -> np.ndarray:
    return np.random.default_rng(0).integers(5, 100, n).astype(np.uint16)


@given(st.integers(20, 300), st.integers(3, 40), st.integers(0, 1000))
def test_packed_rows_lose_no_token(n, length, offset):
    stream = np.arange(n)  # every token is its own place
    rows = cut(stream, length=length, offset=offset, tokens=TOKENS)
    inner = rows[:, 1:-1].ravel()
    assert inner[:n].tolist() == [(offset + i) % n for i in range(n)]
    assert (rows[:, 0] == TOKENS.cls).all()
    assert (rows[:, -1] == TOKENS.sep).all()


def test_an_epoch_reads_every_row_once_and_the_next_one_in_another_order():
    stream = np.arange(10, 10 + 8 * 30)
    order = RowOrder(stream, length=10, n_rows=5, seed=0)
    assert order.steps_per_epoch == 6
    epochs = [
        np.concatenate([order.rows(step, TOKENS)[:, 1:-1] for step in range(begin, begin + 6)])
        for begin in (0, 6)
    ]
    for epoch in epochs:
        assert sorted(epoch.ravel().tolist()) == stream.tolist()
    assert epochs[0].tolist() != epochs[1].tolist()


def test_masking_takes_the_rate_and_shows_80_10_10():
    rows = cut(stream_of(60_000), length=52, offset=0, tokens=TOKENS)
    batch = make_batch(rows, rate=0.3, pairs=0, tokens=TOKENS, random=np.random.default_rng(1))
    assert batch.positions.shape == (len(rows), 15)  # 30 % of 50
    shown = np.take_along_axis(batch.ids, batch.positions, axis=1)
    n = shown.size  # 18,000: three standard errors of 80 % are 0.9 points
    assert abs((shown == TOKENS.mask).mean() - 0.8) < 0.009
    # A random token is the true one in 1 of 95 cases, which adds 0.1 points to the kept ones.
    assert abs((shown == batch.labels).mean() - (0.1 + 0.1 / 95)) < 3 * (0.09 / n) ** 0.5
    assert (np.take_along_axis(rows, batch.positions, axis=1) == batch.labels).all()


def test_only_what_is_masked_changes_and_never_a_special_token():
    rows = cut(stream_of(3000), length=32, offset=0, tokens=TOKENS)
    batch = make_batch(rows, rate=0.4, pairs=0, tokens=TOKENS, random=np.random.default_rng(2))
    masked = np.zeros(rows.shape, dtype=bool)
    np.put_along_axis(masked, batch.positions, True, axis=1)
    assert (batch.ids[~masked] == rows[~masked]).all()
    assert not np.isin(batch.labels, [TOKENS.cls, TOKENS.sep]).any()
    assert (np.diff(batch.positions, axis=1) > 0).all()


def test_a_share_of_rows_gets_a_second_segment_after_a_sentence():
    rows = cut(stream_of(30_000), length=302, offset=0, tokens=TOKENS)  # 3 full stops in a row
    rows[:, 50] = TOKENS.full_stop
    batch = make_batch(rows, rate=0.15, pairs=0.5, tokens=TOKENS, random=np.random.default_rng(3))
    split = batch.segments.any(axis=1)
    assert 0.25 < split.mean() < 0.75  # 100 rows: five standard errors
    begins = batch.segments[split].argmax(axis=1)
    assert (batch.ids[split, begins - 1] == TOKENS.sep).all()
    assert (rows[split, begins - 1] == TOKENS.full_stop).all()
    assert (np.diff(batch.segments, axis=1) >= 0).all()
