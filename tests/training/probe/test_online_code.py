"""The online code: against scikit-learn, and the laws of any honest code."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from microtome.training.probe.fitting import standardized
from microtome.training.probe.online_code import (
    PENALTIES,
    TIMESTEPS,
    Blocks,
    frequency_code,
    online_code,
)
from support.by_definition import sent_by_scikit_learn

N = 400


def made(n_classes=2, *, n=N, width=6, signal=1.0, seed=0):
    """Labels that the first features tell of, the more the larger ``signal``."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, width)).astype(np.float32)
    targets = (signal * features[:, :n_classes] + rng.gumbel(size=(n, n_classes))).argmax(1)
    return standardized(features)[0], targets


def blocks_of(n_classes=2, *, n=N, seed=0):
    return Blocks.of(np.arange(n), n_classes, seed=seed)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("penalties", [(1.0,), (30.0,), PENALTIES])
def test_it_is_what_scikit_learn_gives(n_classes, penalties):
    scaled, targets = made(n_classes)
    blocks = blocks_of(n_classes)
    ours = online_code(scaled, targets, n_classes, blocks, penalties=penalties)
    theirs = sent_by_scikit_learn(scaled, targets, n_classes, blocks, penalties)
    np.testing.assert_allclose(ours, theirs, atol=5e-3)
    assert ours.sum() == pytest.approx(theirs.sum(), rel=1e-4)


@pytest.mark.parametrize("width", [6, 200])
@pytest.mark.parametrize("seed", range(3))
def test_fair_coins_cannot_be_compressed(width, seed):
    """A code that saves k bits of fair coins does so once in 2^k times."""
    scaled, coins = made(width=width, signal=0.0, seed=seed)
    blocks = blocks_of(seed=seed)
    bits = online_code(scaled, coins, 2, blocks).sum()
    assert bits > N - 20
    assert bits < 1.05 * frequency_code(coins, 2, blocks).sum()


def test_labels_that_the_states_show_are_compressed_far():
    features, coins = made(signal=0.0)
    features[:, 0] = 2.0 * coins - 1
    assert online_code(features, coins, 2, blocks_of()).sum() < N / 10


def test_states_that_say_nothing_leave_the_frequencies():
    targets = np.random.default_rng(0).choice(3, p=[0.7, 0.2, 0.1], size=N)
    blocks = blocks_of(3)
    nothing = np.zeros((N, 4), dtype=np.float32)
    by_states = online_code(nothing, targets, 3, blocks)
    alone = frequency_code(targets, 3, blocks)
    np.testing.assert_allclose(by_states, alone, atol=1e-3)
    ordered = targets[blocks.order]
    for start, stop in pairwise(blocks.ends):
        shares = np.bincount(ordered[:start], minlength=3) / start
        priced = -np.log2((start * shares + 1 / 3) / (start + 1))
        np.testing.assert_allclose(alone[blocks.order[start:stop]], priced[ordered[start:stop]])
    assert (alone[blocks.order[: blocks.ends[0]]] == np.log2(3)).all()


def test_labels_of_a_block_never_change_what_earlier_labels_cost():
    scaled, targets = made()
    blocks = blocks_of()
    before = online_code(scaled, targets, 2, blocks)
    for start, stop in pairwise((0, *blocks.ends)):
        sent = blocks.order[start:stop]
        changed = targets.copy()
        changed[sent] = 1 - changed[sent]
        after = online_code(scaled, changed, 2, blocks)
        assert (after[blocks.order[:start]] == before[blocks.order[:start]]).all()
        if start > 2:  # one label of each kind: the next cost a bit either way
            assert (after[sent] != before[sent]).any()


def test_other_names_of_the_labels_leave_the_bits():
    scaled, targets = made(3)
    blocks = blocks_of(3)
    renamed = np.array([2, 0, 1])[targets]
    np.testing.assert_allclose(
        online_code(scaled, renamed, 3, blocks), online_code(scaled, targets, 3, blocks), atol=5e-3
    )


def test_a_new_label_has_a_price():
    """It is sent in the last block for the first time."""
    scaled, targets = made()
    blocks = blocks_of(3)
    targets[blocks.order[-1]] = 2
    bits = online_code(scaled, targets, 3, blocks, penalties=(1.0,))
    assert bits[blocks.order[-1]] == pytest.approx(np.log2(3 * (blocks.ends[-2] + 1)))


def test_blocks_end_at_the_timesteps_and_hold_whole_rows():
    blocks = blocks_of(3, n=1000, seed=4)
    assert sorted(blocks.order) == list(range(1000))
    assert blocks.ends == (3, 4, 8, 16, 32, 63, 125, 250, 500, 1000)
    assert blocks_of(3, n=1000, seed=5).order.tolist() != blocks.order.tolist()
    sizes = np.random.default_rng(0).integers(0, 9, 200)  # words; some rows have none
    row_of = np.repeat(np.arange(200), sizes)
    blocks = Blocks.of(row_of, 5, seed=0)
    rows = row_of[blocks.order]
    assert all(rows[end - 1] != rows[end] for end in blocks.ends[:-1])
    assert len({*rows.tolist()}) == 1 + (np.diff(rows) != 0).sum()  # words stay together
    assert (np.diff(blocks.order)[np.diff(rows) == 0] == 1).all()
    assert blocks.ends[0] >= 5
    n_sent = [len({*rows[:end].tolist()}) for end in blocks.ends[1:]]
    n_rows = len({*rows.tolist()})
    shares = {round(100 * n / n_rows) for n in n_sent}
    assert {25, 50, 100} <= {near for s in shares for near in TIMESTEPS if abs(near - s) <= 3}
