"""The scan over chunks of the vocabulary answers as ``argmax`` over full logits does."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from microtome.observe import Readout, scanning
from microtome.observe.scanning import VocabularyScan, best_tokens, scanned_together


def readout_with(weight, bias=None):
    return Readout("test", lambda states: states, weight, bias)


@pytest.mark.parametrize("early_exit", [True, False])
@pytest.mark.parametrize("chunk", [1, 3, 7, 100])
def test_ties_are_decided_as_argmax_decides_them(chunk, early_exit):
    """Scores of small whole numbers: nearly every row has its best score several times."""
    generator = torch.Generator().manual_seed(chunk)
    weight = torch.randint(-1, 2, (40, 3), generator=generator).float()
    bias = torch.randint(0, 2, (40,), generator=generator).float()
    features = torch.randint(-1, 2, (300, 3), generator=generator).float()
    ids = torch.randint(0, 40, (300,), generator=generator).sort().values
    logits = features @ weight.T + bias
    best = logits.argmax(-1)
    top = logits.amax(-1, keepdim=True)
    assert ((logits == top).sum(-1) > 1).float().mean() > 0.5  # ties are common here
    ids[::3] = best[::3]  # enough right ones
    ids = ids.sort().values
    readout = readout_with(weight, bias)
    scan = VocabularyScan(readout, chunk=chunk, early_exit=early_exit)
    for _ in range(2):  # the second time in the order that the first one taught it
        torch.testing.assert_close(scan.right(features, ids), best == ids)
    torch.testing.assert_close(best_tokens(readout, features, chunk=chunk), best)


def test_leaving_early_changes_no_answer():
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(500, 16, generator=generator)
    ids = torch.randint(0, 500, (400,), generator=generator).sort().values
    features = weight[ids] + 1.2 * torch.randn(400, 16, generator=generator)
    scan = VocabularyScan(readout_with(weight), chunk=50)
    wanted = (features @ weight.T).argmax(-1) == ids
    assert 0.1 < wanted.float().mean() < 0.9
    torch.testing.assert_close(scan.right(features, ids), wanted)


@pytest.mark.parametrize("early_exit", [True, False])
@pytest.mark.parametrize("n_depths", [1, 2, 5])
def test_depths_scanned_together_answer_as_argmax_does_for_each(n_depths, early_exit):
    """Whole numbers: ties are common, and every product is exact however many rows it has."""
    generator = torch.Generator().manual_seed(n_depths)
    weight = torch.randint(-1, 2, (40, 3), generator=generator).float()
    ids = torch.randint(0, 40, (120,), generator=generator).sort().values
    # Each depth further from its tokens than the one before: from nearly all right to few.
    noise = torch.randint(-1, 2, (n_depths, 120, 3), generator=generator)
    states = [8 * weight[ids] + 4 * depth * noise[depth] for depth in range(n_depths)]
    wanted = torch.stack([(own @ weight.T).argmax(-1) == ids for own in states])
    scan = VocabularyScan(readout_with(weight), chunk=7, early_exit=early_exit)
    for _ in range(2):
        torch.testing.assert_close(scan.right_by_depth(states, ids), wanted)
    assert wanted.any()
    assert n_depths == 1 or len(wanted.sum(1).unique()) > 1, "depths that can't be told apart"


@given(n_depths=st.integers(1, 50), n_rows=st.integers(0, 5000))
def test_scans_take_every_depth_once_and_stay_small(n_depths, n_rows):
    sizes = scanned_together(n_depths, n_rows)
    assert sum(sizes) == n_depths
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 1
    # Never more than asked for, unless one depth is more by itself.
    assert max(sizes) == 1 or max(sizes) * n_rows <= scanning.ROWS_TOGETHER


def test_rows_without_any_hope_stop_the_scan():
    weight = torch.cat([torch.full((1, 4), 10.0), torch.zeros(999, 4)])
    scan = VocabularyScan(readout_with(weight), chunk=100)
    right = scan.right(torch.ones(8, 4), torch.full((8,), 500))
    assert not right.any()
    assert scan.n_beaten == [8] + [0] * 9
