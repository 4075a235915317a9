"""Short rows train the whole position table."""

from __future__ import annotations

import numpy as np
import torch

from microtome.families import adapt
from microtome.training.mlm.forward import masked_states
from microtome.training.mlm.rows import Tokens, make_batch
from support.tiny import VOCABULARY, tiny_model

TOKENS = Tokens(cls=2, sep=3, mask=4, first_ordinary=5, n_vocabulary=VOCABULARY, full_stop=7)


def batch_of(n_rows: int, length: int, n_positions: int):
    rows = np.random.default_rng(0).integers(5, VOCABULARY, (n_rows, length))
    random = np.random.default_rng(1)
    return make_batch(
        rows, rate=0.3, pairs=0.0, tokens=TOKENS, random=random, n_positions=n_positions
    )


def test_every_second_row_begins_anywhere_and_none_runs_over_the_end():
    starts = batch_of(4000, 8, 20).starts
    assert (starts[::2] == 0).all()
    assert set(starts[1::2].tolist()) == set(range(13))  # 20 − 8 + 1 places
    assert (batch_of(50, 20, 20).starts == 0).all()
    assert (batch_of(50, 8, 0).starts == 0).all()


def test_a_row_that_begins_later_is_read_at_later_positions():
    model = tiny_model("bert", "mlm").eval()
    batch = batch_of(6, 8, 20)
    assert batch.starts.max() > 0
    positions = torch.arange(8)[None] + torch.from_numpy(batch.starts)[:, None]
    with torch.no_grad():
        ours = masked_states(adapt(model), batch)
        theirs = model.bert(
            input_ids=torch.from_numpy(batch.ids),
            position_ids=positions,
            token_type_ids=torch.from_numpy(batch.segments),
        ).last_hidden_state
        unmoved = model.bert(input_ids=torch.from_numpy(batch.ids)).last_hidden_state
    masked = torch.from_numpy(batch.positions)[..., None].expand(-1, -1, theirs.shape[-1])
    theirs, unmoved = (states.gather(1, masked).flatten(0, 1) for states in (theirs, unmoved))
    assert float((ours - theirs).abs().max()) < 1e-4
    assert float((ours - unmoved).abs().max()) > 1e-2


def test_a_part_of_a_batch_keeps_its_starts():
    batch = batch_of(9, 8, 20)
    assert (batch.part(slice(3, 7)).starts == batch.starts[3:7]).all()
