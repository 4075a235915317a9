"""How good a classifier of patterns is on heads that it wasn't trained on.

Cross-validation keeps all maps of a head on one side. Its macro-F1 comes with that of the rule, and
with the agreement of two labelling passes where the folder has both (``pass1.csv``, ``pass2.csv``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from microtome.errors import DataError
from microtome.observe.patterns.counting import FIRST, SEPARATOR
from microtome.observe.patterns.network import PATTERNS
from patterns.maps import Map, load_labels
from patterns.rules import block_score, by_rule, line_score, stripe_score
from patterns.training import EPOCHS, Ints, predicted, train

N_FOLDS = 5
LONG = 60  # tokens; longer maps have a figure of their own, as have those that stripe on [SEP]


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
