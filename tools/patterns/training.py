"""Train the network on labelled maps, varied, and on made-up ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from microtome.observe.patterns.network import BLOCK, PATTERNS, PatternNetwork, planes_of
from patterns.maps import Map
from patterns.synthesis import LONGEST, made_up_batch
from patterns.variations import varied

Ints = NDArray[np.int64]
BATCH = 32
EPOCHS = 40
LEARNING_RATE = 3e-3
MADE_UP = 16  # maps for each batch of 32 labelled ones


def train(
    maps: Sequence[Map],
    labels: Ints,
    *,
    seed: int = 0,
    epochs: int = EPOCHS,
    longest: int = LONGEST,
    progress: Callable[[int, float], None] | None = None,
) -> PatternNetwork:
    """A network fitted to these maps, varied, and to made-up ones of at most ``longest`` tokens."""
    rng = np.random.default_rng(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        # A third faster on a CPU.
        network = PatternNetwork().to(memory_format=torch.channels_last)
        weights = _class_weights(labels)
        n_steps = epochs * -(-len(maps) // BATCH)
        optimizer = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=0.05)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, LEARNING_RATE, total_steps=n_steps, pct_start=0.15
        )
        network.train()
        for epoch in range(epochs):
            losses = []
            for chosen in batches(maps, rng):
                batch = [varied(maps[i], rng) for i in chosen]
                loss = _loss(network, batch, labels[chosen], weights)
                extra = rng.integers(0, len(PATTERNS), size=MADE_UP)
                # A pass of their own: made-up maps of 200 tokens would pad a batch of short ones.
                made_up_loss = _loss(network, made_up_batch(extra, rng, longest), extra, weights)
                share = MADE_UP / (MADE_UP + len(batch))
                loss = (1 - share) * loss + share * made_up_loss
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
                losses.append(float(loss.detach()))
            if progress is not None:
                progress(epoch + 1, float(np.mean(losses)))
    return network.eval()


def batches(maps: Sequence[Map], rng: np.random.Generator) -> Iterator[Ints]:
    """Maps of about the same length together, so that little is padded."""
    lengths = np.array([each.length for each in maps]) + rng.uniform(-4, 4, size=len(maps))
    order = np.argsort(lengths)
    chunks = [order[i : i + BATCH] for i in range(0, len(order), BATCH)]
    for i in rng.permutation(len(chunks)):
        yield chunks[i]


def _loss(network: PatternNetwork, maps: Sequence[Map], labels: Ints, weights: Tensor) -> Tensor:
    scores = network(*stacked(maps))
    targets = torch.from_numpy(labels)
    return functional.cross_entropy(scores, targets, weight=weights, label_smoothing=0.05)


def stacked(maps: Sequence[Map]) -> tuple[Tensor, Tensor]:
    """Planes of padded maps (n, 6, L, L), and which tokens are real (n, L)."""
    longest = max(each.length for each in maps)
    weights = torch.zeros(len(maps), longest, longest)
    second = torch.zeros(len(maps), longest, dtype=torch.bool)
    real = torch.zeros(len(maps), longest, dtype=torch.bool)
    for i, each in enumerate(maps):
        weights[i, : each.length, : each.length] = torch.from_numpy(each.weights)
        real[i, : each.length] = True
        if each.border:
            second[i, each.border : each.length] = True
    return planes_of(weights, second, real), real


@torch.inference_mode()
def predicted(network: PatternNetwork, maps: Sequence[Map]) -> Ints:
    """The network's classes; ``block`` for pairs only."""
    classes = np.zeros(len(maps), dtype=np.int64)
    order = np.argsort([each.length for each in maps], kind="stable")
    for start in range(0, len(order), BATCH):
        chosen = order[start : start + BATCH]
        scores = network(*stacked([maps[i] for i in chosen]))
        single = torch.tensor([not maps[i].border for i in chosen])
        scores[single, BLOCK] = -torch.inf
        classes[chosen] = scores.argmax(-1).numpy()
    return classes


def _class_weights(labels: Ints) -> Tensor:
    counts = np.bincount(labels, minlength=len(PATTERNS))
    weights = 1 / np.sqrt(np.maximum(counts, 1))
    return torch.tensor(weights / weights.mean(), dtype=torch.float32)


def save_classifier(
    path: Path,
    network: PatternNetwork,
    *,
    confusion: NDArray[np.int64],
    figures: Mapping[str, Any] | None = None,
) -> None:
    """Write the weights, and in the same file what cross-validation said of them."""
    weights = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    told = {
        "patterns": json.dumps(PATTERNS),
        "confusion": json.dumps(confusion.tolist()),
        "figures": json.dumps(dict(figures or {})),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(weights, path, metadata=told)
