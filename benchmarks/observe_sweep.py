"""J1: every head and every layer off, and the model as it is: 157 passes of the plain loop.

The plain loop is timed on a few of its passes, one per third of the layers, and multiplied up:
each pass costs the same, whichever head is off.
"""

from __future__ import annotations

import numpy as np
import torch

import rivals
import workloads
from measuring import Bar, Clock, Row, finish, options, peak_mb
from microtome.families import adapt
from microtome.observe import Texts, sweep

TIMED = 2  # passes of each rival in every round
JOBS = (
    # shape, data, texts, ratio to pad-128, ratio to dynamic padding, share of the roofline
    ("base", "sst2", 8, 10.0, 4.0, 0.85),
    ("base", "mrpc", 4, 5.0, 2.5, 0.85),
    ("minilm", "sst2", 32, 10.0, 4.0, 0.75),
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
    model = workloads.classifier(shape)
    lengths, origin = workloads.lengths(data, n_texts)
    texts = workloads.texts(lengths)
    sizes = workloads.SHAPES[shape]
    n_layers, n_heads = sizes["num_hidden_layers"], sizes["num_attention_heads"]
    n_passes = n_layers * n_heads + n_layers + 1
    ours: list = []
    naive = _Loop(model, texts, rivals.NAIVE_LENGTH, "eager")
    dynamic = _Loop(model, texts, None, "sdpa")
    timed = clock.rounds(
        {
            "pad-128 eager": naive,
            "ours": lambda: ours.append(sweep(model, texts)),
            "dynamic padding": dynamic,
        },
        n_rounds,
    )
    difference = max(naive.difference(ours[-1]), dynamic.difference(ours[-1]))
    assert difference < 1e-4, f"the logits differ by {difference}"
    seconds = timed["ours"]
    share = algorithm_flops(sizes, len(texts.ids)) / seconds / timed["mm"]
    row = Row(
        f"J1 head sweep, {shape}, {data} lengths",
        seconds,
        {name: timed[name] * n_passes / TIMED for name in ("pad-128 eager", "dynamic padding")},
        roofline=share,
        peak_mb=peak_mb(lambda: sweep(model, texts, ["0.0", f"{n_layers - 1}.*"])),
        notes=f"{n_texts} texts, {n_passes} passes, rivals {TIMED} of them, {origin},"
        f" effect {naive.effect(ours[-1]):.2g}, error {difference:.1g}",
    )
    row.bars = [
        Bar("vs pad-128", row.ratios["pad-128 eager"], limits[0]),
        Bar("vs dynamic", row.ratios["dynamic padding"], limits[1]),
        Bar("of roofline", share, limits[2], asserted=False),
        Bar("logits", difference, 1e-4, at_least=False),
    ]
    return row


class _Loop:
    """A few passes of the plain loop, and what they gave."""

    def __init__(self, model, texts: Texts, to: int | None, attention: str) -> None:
        self.model, self.attention = model, attention
        self.batch = rivals.padded(texts, to)
        n_layers = adapt(model).shape.n_layers
        self.targets = [(n_layers // 3, 3), (2 * n_layers // 3, 7)][:TIMED]
        self.found: dict[str, np.ndarray] = {}

    def __call__(self) -> None:
        self.model.set_attn_implementation(self.attention)
        for layer, head in self.targets:
            logits = rivals.logits_with_head_off(self.model, self.batch, layer, [head])
            self.found[f"{layer}.{head}"] = logits.numpy()

    def difference(self, ours) -> float:
        pairs = [(ours.logits[ours.names.index(name)], own) for name, own in self.found.items()]
        return max(float(np.abs(mine - own).max()) for mine, own in pairs)

    def effect(self, ours) -> float:
        return max(float(np.abs(own - ours.baseline).max()) for own in self.found.values())


def one_pass(clock: Clock, n_rounds: int) -> Row:
    """One ablated pass by the peers: each of them needs all 157."""
    model = workloads.classifier("base")
    model.set_attn_implementation("eager")
    batch = rivals.padded(workloads.texts(workloads.lengths("sst2", 8)[0]), rivals.NAIVE_LENGTH)
    wanted = rivals.logits_with_head_off(model, batch, 4, [3])
    works = {"plain": lambda: rivals.logits_with_head_off(model, batch, 4, [3])}
    for name, ablate in rivals.peers().items():
        np.testing.assert_allclose(ablate(model, batch, 4, 3), wanted, atol=1e-4, err_msg=name)
        works[name] = lambda ablate=ablate: ablate(model, batch, 4, 3)
    timed = clock.rounds(works, n_rounds)
    others = {name: timed[name] for name in works if name != "plain"}
    return Row("one pass of the plain loop, base, pad-128", timed["plain"], others)


def main() -> None:
    given = options(__doc__)
    clock = Clock(given.clock)
    with torch.no_grad():
        rows = [job(clock, given.rounds, *one) for one in JOBS]
        rows.append(one_pass(clock, given.rounds))
    finish("observe_sweep", rows, given)


if __name__ == "__main__":
    main()
