"""J1: every head and every layer off, and the model as it is: 157 passes of the plain loop.

The rivals run single passes over a batch of 32 rows, as drawn, and their time is multiplied by the
number of passes: each costs the same, whichever head is off. Ours runs the whole sweep on a few of
these rows, evenly spread over the lengths; the rivals' time is scaled to the tokens of those rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from kit import rivals, workloads
from kit.measuring import Bar, Clock, Row, finish, options, reached
from microtome.observe import Sweep, Texts, sweep

BATCH = 32
SPREAD = 0.04  # of the random weights: large enough for a head's effect on the logits to show
JOBS = (
    # shape, data, texts of ours, ratio to pad-128, ratio to dynamic padding, share of the roofline
    ("base", "sst2", 8, reached(12.0, 10.0), reached(4.5, 4.0), 0.85),
    ("base", "mrpc", 4, 5.0, 2.5, 0.85),
    ("minilm", "sst2", 32, reached(14.0, 10.0), reached(5.5, 4.0), 0.75),
)


def algorithm_flops(shape: dict[str, int], n_tokens: int) -> int:
    """Products of the sweep's own plan; attention, norms and the first-token layer not counted."""
    width, inner = shape["hidden_size"], shape["intermediate_size"]
    n_layers, n_variants = shape["num_hidden_layers"], shape["num_attention_heads"] + 1
    layer, feed_forward = 2 * (4 * width**2 + 2 * width * inner), 4 * width * inner
    total = 0
    for index in range(n_layers - 1):
        own = layer + 2 * width**2 + n_variants * feed_forward
        total += own + n_variants * layer * (n_layers - 2 - index)
    return total * n_tokens


def job(clock: Clock, n_rounds: int, shape: str, data: str, n_texts: int, *limits: float) -> Row:
    model = workloads.classifier(shape, spread=SPREAD)
    lengths, origin = workloads.lengths(data, BATCH)
    whole = workloads.texts(lengths)
    chosen = np.argsort(lengths)[np.linspace(0, BATCH - 1, n_texts + 2).round().astype(int)[1:-1]]
    if n_texts == BATCH:
        chosen = np.arange(BATCH)
    texts = workloads.taken(whole, chosen)
    sizes = workloads.SHAPES[shape]
    n_passes = (sizes["num_attention_heads"] + 1) * sizes["num_hidden_layers"] + 1
    ours: list[Sweep] = []
    loops = {
        "pad-128 eager": Loop(model, whole, rivals.NAIVE_LENGTH, "eager"),
        "dynamic padding": Loop(model, whole, None, "sdpa"),
    }
    timed = clock.rounds({"ours": lambda: ours.append(sweep(model, texts)), **loops}, n_rounds)
    difference = max(loop.difference(ours[-1], chosen) for loop in loops.values())
    assert difference < 1e-4, f"the logits differ by {difference}"
    effect = loops["pad-128 eager"].effect(ours[-1], chosen)
    scale = n_passes * len(texts.ids) / len(whole.ids)
    flops = algorithm_flops(sizes, len(texts.ids))
    row = Row(
        f"J1 head sweep, {shape}, {data} lengths",
        timed["ours"],
        {name: timed[name] * scale for name in loops},
        roofline=flops / timed["ours"] / timed["mm"],
        notes=f"{n_texts} texts, {len(texts.ids)} tokens, {n_passes} passes, {origin};"
        f" effect {effect:.2g}, error {difference:.1g}; {clock.how_often()}",
    )
    row.bars = [
        Bar("vs pad-128", row.ratios["pad-128 eager"], limits[0]),
        Bar("vs dynamic", row.ratios["dynamic padding"], limits[1]),
        Bar("of roofline", row.roofline or 0.0, limits[2], asserted=False),
        Bar("logits", difference, 1e-4, at_least=False),
    ]
    return row


class Loop:
    """One pass of the plain loop per call, and what it gave."""

    def __init__(self, model, texts: Texts, to: int | None, attention: str) -> None:
        self.model, self.attention = model, attention
        self.batch = rivals.padded(texts, to)
        self.layer, self.head = model.config.num_hidden_layers // 2, 3

    def __call__(self) -> None:
        self.model.set_attn_implementation(self.attention)
        self.found = rivals.logits_with_head_off(
            self.model, self.batch, self.layer, [self.head]
        ).numpy()

    def difference(self, ours: Sweep, chosen: np.ndarray) -> float:
        own = ours.logits[ours.names.index(f"{self.layer}.{self.head}")]
        return float(np.abs(own - self.found[chosen]).max())

    def effect(self, ours: Sweep, chosen: np.ndarray) -> float:
        return float(np.abs(ours.baseline - self.found[chosen]).max())


def one_pass(clock: Clock, n_rounds: int, peers: dict[str, Callable[..., torch.Tensor]]) -> Row:
    """One ablated pass by each of the peers, and by torch hooks: each needs all 157."""
    model = workloads.classifier("base", spread=SPREAD)
    model.set_attn_implementation("eager")
    batch = rivals.padded(workloads.texts(workloads.lengths("sst2", 8)[0]), rivals.NAIVE_LENGTH)
    wanted = rivals.logits_with_head_off(model, batch, 4, [3])
    works: dict[str, Callable[[], object]] = {
        "plain": lambda: rivals.logits_with_head_off(model, batch, 4, [3])
    }
    for name, ablate in peers.items():
        np.testing.assert_allclose(ablate(model, batch, 4, 3), wanted, atol=1e-4, err_msg=name)
        works[name] = partial(ablate, model, batch, 4, 3)
    timed = clock.rounds(works, n_rounds)
    others = {name: timed[name] for name in works if name != "plain"}
    return Row("one pass of the plain loop, base, pad-128", timed["plain"], others)


def main() -> None:
    given = options(__doc__)
    clock = Clock(given.clock)
    with torch.no_grad():
        rows = [job(clock, given.rounds, *one) for one in JOBS]
        peers = rivals.peers()
        if len(peers) > 1:  # hooks alone tell nothing: they are the plain loop
            rows.append(one_pass(clock, given.rounds, peers))
    finish("observe_sweep", rows, given)


if __name__ == "__main__":
    main()
