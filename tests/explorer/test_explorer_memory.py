"""Edit after edit, nothing is left behind."""

from __future__ import annotations

import gc

import psutil

from microtome.explorer.session import Session, SessionRequest
from microtome.tasks import DataSpec
from support.explorer.client import running
from support.labelled_texts import sentences, write_rows
from support.training_rows import checkpoint

N_EDITS = 250
MEGABYTE = 2**20


def test_edit_after_edit_leaves_memory_flat(tmp_path):
    """A model of 3 MB: one that stayed for each edit would be 750 MB."""
    model = checkpoint(
        tmp_path / "model", "bert", "classification", hidden_size=128, intermediate_size=512,
        num_hidden_layers=4, num_attention_heads=4,
    )  # fmt: skip
    size = (model / "model.safetensors").stat().st_size
    assert size > 3 * MEGABYTE
    rows = write_rows(tmp_path / "rows.csv", sentences(40), [i % 2 for i in range(40)])
    session, used = Session(SessionRequest(str(model), DataSpec(path=rows))), []
    with running(session) as client:
        for number in range(N_EDITS):
            edit = f"remove({number % 4}) | reinit({number % 3}, seed={number}) | disable(0.1)"
            assert client.post("text", {"text": "the cat", "edit": edit}).status == 200
            if number % 10 == 0:
                assert client.post("score", {"edit": edit}).status == 200
            if number % 50 == 49:
                gc.collect()
                used.append(psutil.Process().memory_info().rss)
    # The first hundred fill what is kept.
    assert used[-1] - used[1] < 10 * size, [round(each / MEGABYTE) for each in used]
