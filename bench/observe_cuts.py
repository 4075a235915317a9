"""J8: every layer left out in turn, then a greedy search down to one layer, at 12 layers.

The rival is the plain loop: one pass for each cut, with the layers taken out of the model's list,
dynamic padding and SDPA. It is timed on the whole model and on a cut to half of its layers, and its
time is scaled to all cuts of the search, which has the same cuts for both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from kit import rivals, workloads
from kit.measuring import Bar, Clock, Row, finish, options, peak_mb
from microtome.observe.layer_orders import predict_orders

N_TEXTS, N_LAYERS = 24, 12
LABELS = np.arange(N_TEXTS) % 2


def cuts_of(order: Sequence[int]) -> list[tuple[int, ...]]:
    """The order without each of its layers in turn."""
    return [tuple(order[:i]) + tuple(order[i + 1 :]) for i in range(len(order))]


def score(logits: np.ndarray) -> float:
    """The mean log-probability of the labels: a number that hardly has ties."""
    shifted = logits - np.logaddexp(logits[:, :1], logits[:, 1:])
    return float(shifted[np.arange(len(LABELS)), LABELS].mean())


def job(shape: str, least: float, clock: Clock, n_rounds: int) -> Row:
    model = workloads.classifier(shape)
    lengths, origin = workloads.lengths("sst2", N_TEXTS)
    texts = workloads.texts(lengths)
    batch = rivals.padded(texts)
    layers = model.bert.encoder.layer
    kept: dict[tuple[int, ...], np.ndarray] = {}

    def search() -> None:
        order = tuple(range(N_LAYERS))
        while len(order) > 1:
            tried = cuts_of(order)
            found = predict_orders(model, texts, tried)
            kept.update(zip(tried, found, strict=True))
            order = tried[int(np.argmax([score(logits) for logits in found]))]

    @torch.no_grad()
    def plain(order: Sequence[int]) -> np.ndarray:
        model.bert.encoder.layer = nn.ModuleList(layers[i] for i in order)
        logits = model(**batch).logits.numpy()
        model.bert.encoder.layer = layers
        return logits

    half = tuple(range(1, N_LAYERS, 2))
    works = {"ours": search, "whole": lambda: plain(range(N_LAYERS)), "half": lambda: plain(half)}
    timed = clock.rounds(works, n_rounds)
    compared = [order for order in kept if len(order) in (N_LAYERS - 1, 4)]
    difference = max(float(np.abs(kept[order] - plain(order)).max()) for order in compared)
    assert difference < 1e-4, f"the logits differ by {difference}"
    per_layer = (timed["whole"] - timed["half"]) / (N_LAYERS - len(half))
    fixed = timed["whole"] - N_LAYERS * per_layer
    loop = sum(fixed + per_layer * len(order) for order in kept)
    row = Row(
        f"J8 all single cuts and a greedy search, {shape}", timed["ours"], {"plain loop": loop},
        peak_mb=peak_mb(search),
        notes=f"{N_TEXTS} texts, {origin}, {len(kept)} cuts; error {difference:.1g};"
        f" {clock.how_often()}",
    )  # fmt: skip
    row.bars = [Bar("vs plain loop", row.ratios["plain loop"], least)]
    return row


def main() -> None:
    given = options(__doc__)
    finish("observe_cuts", [job("12x384", 3.0, Clock(given.clock), given.rounds)], given)


if __name__ == "__main__":
    main()
