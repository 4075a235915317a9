"""J4: probes of all depths on one cached pass, against one truncated encoder per classifier.

The usual way runs the frozen encoder for every classifier, epoch and batch. Its time is taken from
one batch at some depths and multiplied out (a layer costs what a layer costs): said, not run.
"""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

import numpy as np
import torch
from transformers import BertModel

from kit import rivals, workloads
from kit.measuring import Bar, Clock, Row, finish, options, peak_mb, reached
from microtome.observe.texts import select_texts
from microtome.training.probe.fitting import fit_paper
from microtome.training.probe.probes import PAPER
from microtome.training.probe.states import cache_states

BATCH, EPOCHS = 32, 3
N_ROWS = 64
SAMPLED = (1, 4)  # depths at which the rivals' batches are timed


def truncated(model: BertModel, depth: int) -> BertModel:
    cut = copy.copy(model)
    cut._modules = dict(model._modules)
    cut.encoder = copy.copy(model.encoder)
    cut.encoder._modules = {"layer": model.encoder.layer[:depth]}
    return cut


def probing(shape: str, clock: Clock, n_rounds: int) -> Row:
    lengths, origin = workloads.lengths("sst2", N_ROWS)
    texts = workloads.texts(lengths)
    targets = np.random.default_rng(0).integers(0, 2, N_ROWS)
    encoder = workloads.classifier(shape).bert
    encoder.set_attn_implementation("eager")
    n_layers = encoder.config.num_hidden_layers
    batches = {
        name: rivals.padded(select_texts(texts, np.arange(BATCH))[0], to)
        for name, to in (("pad-128", rivals.NAIVE_LENGTH), ("dynamic padding", None))
    }
    linear = torch.nn.Linear(encoder.config.hidden_size, 2)
    adamw = torch.optim.AdamW(linear.parameters(), lr=2e-5, fused=True)
    cached, seen = {}, {}

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            states = cache_states(encoder, texts, Path(folder), features=("cls",))["cls"]
            cached["cls"] = np.array(states[:, :BATCH])
            fit_paper(states, targets, "classification", 2, PAPER, init_seed=0, data_seed=0)

    def step(name: str, depth: int) -> None:
        with torch.no_grad():
            first = truncated(encoder, depth)(**batches[name]).last_hidden_state[:, 0]
        seen[name, depth] = first.numpy()
        labels = torch.from_numpy(targets[:BATCH])
        torch.nn.functional.cross_entropy(linear(first), labels).backward()
        adamw.step()
        adamw.zero_grad()

    ours()
    works = {"ours": ours} | {
        f"{name} {depth}": lambda name=name, depth=depth: step(name, depth)
        for name in batches
        for depth in SAMPLED
    }
    timed = clock.rounds(works, n_rounds)
    for (_, depth), states in seen.items():
        np.testing.assert_allclose(cached["cls"][depth], states, atol=1e-3)
    n_batches = -(-N_ROWS // BATCH)

    def whole(name: str) -> float:
        """Seconds of all classifiers: depths 1 to N, their mean depth being (N + 1) / 2."""
        low, high = (timed[f"{name} {depth}"] for depth in SAMPLED)
        per_layer = (high - low) / (SAMPLED[1] - SAMPLED[0])
        average = low + per_layer * ((n_layers + 1) / 2 - SAMPLED[0])
        return n_layers * EPOCHS * n_batches * average

    row = Row(
        f"J4 {n_layers} probes × {EPOCHS} epochs, {N_ROWS} rows, {shape}, sst2 lengths",
        timed["ours"],
        {name: whole(name) for name in batches},
        peak_mb=peak_mb(ours),
        notes=f"{origin}; the rivals' time is multiplied out from batches at depths "
        f"{SAMPLED[0]} and {SAMPLED[1]}; equal states",
    )
    row.bars = [Bar("vs pad-128", row.ratios["pad-128"], reached(100.0, 50.0))]
    return row


def main() -> None:
    given = options(__doc__)
    clock = Clock(given.clock)
    finish("training_probes", [probing("base", clock, given.rounds)], given)


if __name__ == "__main__":
    main()
