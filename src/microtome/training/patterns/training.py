"""Train a classifier of attention patterns from a folder of labelled maps, and say how good it is.

    train_folder(Path("my-maps"), Path("classifier.safetensors"))

Cross-validation keeps all maps of a head on one side. Its macro-F1 comes with that of the rule, and
with the agreement of two labelling passes where the folder has both (``pass1.csv``, ``pass2.csv``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from microtome.errors import DataError
from microtome.observe.patterns.classifier import save_classifier
from microtome.observe.patterns.maps import (
    BLOCK,
    FIRST,
    PATTERNS,
    SEPARATOR,
    Map,
    load_labels,
    load_maps,
)
from microtome.observe.patterns.network import PatternNetwork, planes_of
from microtome.observe.patterns.rules import block_score, by_rule, line_score, stripe_score
from microtome.training.patterns.synthesis import made_up_batch
from microtome.training.patterns.variations import varied

Ints = NDArray[np.int64]
BATCH = 32
N_FOLDS = 5
EPOCHS = 40
LEARNING_RATE = 3e-3
LONG = 60  # tokens; longer maps have a figure of their own, as have those that stripe on [SEP]
MADE_UP = 16  # maps for each batch of 32 labelled ones


def train(
    maps: Sequence[Map],
    labels: Ints,
    *,
    seed: int = 0,
    epochs: int = EPOCHS,
    progress: Callable[[int, float], None] | None = None,
) -> PatternNetwork:
    """A network fitted to these maps, varied, and to made-up ones."""
    rng = np.random.default_rng(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = PatternNetwork()
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
                made_up_loss = _loss(network, made_up_batch(extra, rng), extra, weights)
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


def ruled(maps: Sequence[Map]) -> Ints:
    """The classes by rule alone: the floor."""
    return np.array([_ruled(each) for each in maps], dtype=np.int64)


def _ruled(shown: Map) -> int:
    weights = torch.from_numpy(shown.weights)[None]
    second = torch.arange(shown.length) >= (shown.border or shown.length)
    same = second[:, None] == second[None, :]
    ordinary = torch.from_numpy((shown.kinds != FIRST) & (shown.kinds != SEPARATOR))
    blocks = block_score(weights, same, ordinary) if shown.border else torch.zeros(1)
    return int(by_rule(stripe_score(weights), line_score(weights), blocks))


def folds(maps: Sequence[Map], labels: Ints, *, n_folds: int = N_FOLDS, seed: int = 0) -> Ints:
    """The fold of each map: a head's maps together, classes spread as evenly as possible."""
    heads = sorted({each.head for each in maps})
    if len(heads) < n_folds:
        raise DataError(f"the maps must be of at least {n_folds} heads, got {len(heads)}")
    of_map = np.array([heads.index(each.head) for each in maps])
    counts = np.zeros((len(heads), len(PATTERNS)))
    np.add.at(counts, (of_map, labels), 1)
    rare = counts / np.maximum(counts.sum(axis=0), 1)  # a map of a rare class weighs more
    order = np.random.default_rng(seed).permutation(len(heads))
    order = order[np.argsort(-rare[order].max(axis=1), kind="stable")]
    filled = np.zeros((n_folds, len(PATTERNS)))
    fold_of = np.zeros(len(heads), dtype=np.int64)
    for head in order:
        cost = ((filled + rare[head]) ** 2).sum(axis=1) - (filled**2).sum(axis=1)
        fold_of[head] = int(cost.argmin())
        filled[fold_of[head]] += rare[head]
    folded: Ints = fold_of[of_map]
    return folded


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Held-out predictions of every map."""

    labels: Ints
    predicted: Ints
    heads: Ints

    @property
    def confusion(self) -> Ints:
        """Counts (true, guessed)."""
        return confusion_of(self.labels, self.predicted)

    def interval(self, seed: int = 0, n_repeats: int = 1000) -> tuple[float, float, float]:
        """Macro-F1 with a 95 % interval; heads are drawn again, not maps."""
        return f1_interval(self.labels, self.predicted, self.heads, seed, n_repeats)


def cross_validate(
    maps: Sequence[Map],
    labels: Ints,
    *,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    epochs: int = EPOCHS,
    progress: Callable[[int, float], None] | None = None,
) -> CrossValidation:
    """Train without a fold's heads, predict its maps; for every fold."""
    of_map = folds(maps, labels, n_folds=n_folds, seed=seed)
    guessed = np.zeros(len(maps), dtype=np.int64)
    for fold in range(n_folds):
        out = np.flatnonzero(of_map == fold)
        kept = np.flatnonzero(of_map != fold)
        network = train([maps[int(i)] for i in kept], labels[kept], seed=seed, epochs=epochs)
        guessed[out] = predicted(network, [maps[int(i)] for i in out])
        if progress is not None:
            progress(fold + 1, macro_f1(confusion_of(labels[out], guessed[out])))
    return CrossValidation(labels, guessed, head_numbers(maps))


def head_numbers(maps: Sequence[Map]) -> Ints:
    """A number for each map's head."""
    heads = sorted({each.head for each in maps})
    return np.array([heads.index(each.head) for each in maps], dtype=np.int64)


def confusion_of(true: Ints, guessed: Ints) -> Ints:
    """Counts (true, guessed)."""
    counts = np.zeros((len(PATTERNS), len(PATTERNS)), dtype=np.int64)
    np.add.at(counts, (true, guessed), 1)
    return counts


def macro_f1(confusion: NDArray[Any]) -> float:
    """The mean over classes of F1; classes that neither side has are left out."""
    both = confusion.sum(axis=0) + confusion.sum(axis=1)
    scores = 2 * np.diag(confusion)[both > 0] / both[both > 0]
    return float(scores.mean())


def f1_interval(
    true: Ints, guessed: Ints, groups: Ints, seed: int = 0, n_repeats: int = 1000
) -> tuple[float, float, float]:
    """Macro-F1 and a percentile interval over groups drawn again."""
    n_groups = int(groups.max()) + 1
    tables = np.zeros((n_groups, len(PATTERNS), len(PATTERNS)))
    np.add.at(tables, (groups, true, guessed), 1)
    rng = np.random.default_rng(seed)
    times = rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=n_repeats)
    drawn = [macro_f1(np.tensordot(weights, tables, 1)) for weights in times]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return macro_f1(tables.sum(axis=0)), float(low), float(high)


def kappa(first: Ints, second: Ints) -> float:
    """Cohen's."""
    counts = confusion_of(first, second) / len(first)
    chance = float(counts.sum(axis=0) @ counts.sum(axis=1))
    return float((np.trace(counts) - chance) / (1 - chance))


def _class_weights(labels: Ints) -> Tensor:
    counts = np.bincount(labels, minlength=len(PATTERNS))
    weights = 1 / np.sqrt(np.maximum(counts, 1))
    return torch.tensor(weights / weights.mean(), dtype=torch.float32)


def _is_long(maps: Sequence[Map]) -> NDArray[np.bool_]:
    return np.array([each.length > LONG for each in maps])


def _is_on_sep(maps: Sequence[Map]) -> NDArray[np.bool_]:
    """Where the most attended token is a [SEP]."""
    return np.array([each.kinds[each.weights.mean(0).argmax()] == SEPARATOR for each in maps])


def figures_of(folder: Path, maps: Sequence[Map], done: CrossValidation) -> dict[str, Any]:
    """How good a classifier is, compared with the rule and with the agreement of two passes."""
    value, low, high = done.interval()
    rule, rule_low, rule_high = f1_interval(done.labels, ruled(maps), done.heads)
    figures: dict[str, Any] = {
        "n_maps": len(maps), "n_heads": int(done.heads.max()) + 1, "n_folds": N_FOLDS,
        "f1": value, "f1_low": low, "f1_high": high,
        "rule_f1": rule, "rule_low": rule_low, "rule_high": rule_high,
    }  # fmt: skip
    for name, part in {"long": _is_long(maps), "on_sep": _is_on_sep(maps)}.items():
        figures[f"n_{name}"] = int(part.sum())
        if part.any():
            held_out = confusion_of(done.labels[part], done.predicted[part])
            figures[f"f1_{name}"] = macro_f1(held_out)
    if (folder / "pass2.csv").is_file():
        first, second = (load_labels(folder / f"pass{i}.csv", maps) for i in (1, 2))
        figures |= {"passes_f1": macro_f1(confusion_of(first, second))}
        figures["passes_kappa"] = kappa(first, second)
        figures["passes_confusion"] = confusion_of(first, second).tolist()
    return figures


def train_folder(folder: Path, out: Path, *, seed: int = 0, epochs: int = EPOCHS) -> dict[str, Any]:
    """Train on all of a folder's maps; what cross-validation said goes into the same file."""
    maps = load_maps(folder)
    labels = load_labels(folder / "labels.csv", maps)
    done = cross_validate(maps, labels, seed=seed, epochs=epochs)
    figures = figures_of(folder, maps, done)
    network = train(maps, labels, seed=seed, epochs=epochs)
    save_classifier(out, network, confusion=done.confusion, figures=figures)
    return figures
