"""Every head and layer of an embedder off, on a search: all documents are embedded again each time.

bge-small on the texts of Cranfield (queries and documents), where they are at hand; else a random
model of its shape on texts of such lengths. The rivals run single passes over a batch of texts as
drawn, and their time is multiplied by the number of passes; ours runs the whole sweep on a few of
these texts, evenly spread over the lengths, and the rivals' time is scaled to their tokens.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from transformers import BertConfig, BertModel, PreTrainedModel

from kit import rivals, workloads
from kit.measuring import Bar, Clock, Row, finish, options
from microtome import load, load_tokenizer
from microtome.families.embedder import Embedder, attach_embedder
from microtome.observe import Sweep, Texts, sweep
from microtome.observe.evaluation import encode_for
from microtome.tasks import DataSpec, open_data

BATCH, N_TEXTS, LENGTH = 16, 4, 512
LAYER, HEAD = 6, 3
ROOT = Path(__file__).resolve().parent.parent


def workload() -> tuple[PreTrainedModel, Texts, str]:
    """The embedder, a batch of texts as drawn, and where they come from."""
    folder, data = (
        Path(os.environ.get("MICROTOME_TEST_DATA", ROOT.parent / "shared")) / name
        for name in ("models/bge-small-en", "data/retrieval/cranfield")
    )
    rng = np.random.default_rng(0)
    if folder.is_dir() and data.is_dir():
        model, tokenizer = load(str(folder)), load_tokenizer(str(folder))
        encoded = encode_for(model, tokenizer, open_data(DataSpec(path=data)))
        chosen = np.sort(rng.choice(len(encoded), BATCH, replace=False))
        return model, Texts.of([encoded.row(i).tolist() for i in chosen]), "bge-small, Cranfield"
    sizes = BertConfig(hidden_size=384, intermediate_size=1536, num_hidden_layers=12)
    model = attach_embedder(BertModel(sizes, add_pooling_layer=False).eval(), Embedder(("cls",)))
    lengths = np.clip(rng.lognormal(5.2, 0.6, BATCH), 12, LENGTH).astype(int)
    return model, workloads.texts(lengths), "random weights"


class Loop:
    """One pass of the plain loop per call, and what it gave."""

    def __init__(
        self, model: PreTrainedModel, texts: Texts, to: int | None, attention: str
    ) -> None:
        self.model, self.attention = model, attention
        self.batch = rivals.padded(texts, to)

    @torch.no_grad()
    def __call__(self) -> None:
        self.model.set_attn_implementation(self.attention)
        with rivals.head_off(SimpleNamespace(bert=self.model), LAYER, [HEAD]):
            states = self.model(**self.batch).last_hidden_state[:, 0]
        self.found = torch.nn.functional.normalize(states, dim=-1).numpy()


def job(clock: Clock, n_rounds: int) -> Row:
    """The sweep against both loops."""
    model, whole, origin = workload()
    order = np.argsort(whole.lengths)
    chosen = order[np.linspace(0, BATCH - 1, N_TEXTS + 2).round().astype(int)[1:-1]]
    texts = workloads.taken(whole, chosen)
    n_passes = 12 * 13 + 1
    ours: list[Sweep] = []
    loops = {
        f"pad-{LENGTH} eager": Loop(model, whole, LENGTH, "eager"),
        "dynamic padding": Loop(model, whole, None, "sdpa"),
    }
    timed = clock.rounds({"ours": lambda: ours.append(sweep(model, texts)), **loops}, n_rounds)
    mine = ours[-1].logits[ours[-1].names.index(f"{LAYER}.{HEAD}")]
    mine = mine / np.linalg.norm(mine, axis=1, keepdims=True)
    difference = max(float(np.abs(mine - loop.found[chosen]).max()) for loop in loops.values())
    assert difference < 1e-4, f"the embeddings differ by {difference}"
    scale = n_passes * len(texts.ids) / len(whole.ids)
    rivals_taken = {name: timed[name] * scale for name in loops}
    row = Row(
        "head sweep of an embedder on a search", timed["ours"], rivals_taken,
        notes=f"{origin}, {N_TEXTS} texts, {len(texts.ids)} tokens, {n_passes} passes;"
        f" error {difference:.1g}; {clock.how_often()}",
    )  # fmt: skip
    row.bars = [
        Bar(f"vs pad-{LENGTH}", row.ratios[f"pad-{LENGTH} eager"], 5.0),
        Bar("vs dynamic", row.ratios["dynamic padding"], 2.5, asserted=False),
        Bar("embeddings", difference, 1e-4, at_least=False),
    ]
    return row


def main() -> None:
    given = options(__doc__)
    with torch.no_grad():
        rows = [job(Clock(given.clock), given.rounds)]
    finish("observe_search", rows, given)


if __name__ == "__main__":
    main()
