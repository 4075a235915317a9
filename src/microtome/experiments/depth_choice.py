"""What the best depth is worth: picked on some rows and seeds, scored on others.

The papers show the deeper models "picked based on their performance": the best of many single runs
against a mean, on the same rows. Here the rows are halved at random many times; for each seed, the
depth with the best mean over the *other* seeds on one half is compared with the baseline, both
trained with *this* seed, on the other half. One gain per seed comes out, and Student's interval
over the seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.experiments.comparing import Outcome, as_metric
from microtome.experiments.depth_table import OTHER, SAME, SELECTION
from microtome.experiments.predictions import Judge, score_on, stored_logits
from microtome.experiments.subject import MODEL, opened_rows
from microtome.runs import Context, Result
from microtome.statistics import halves, over_seeds

N_HALVES = 100
Scores = NDArray[np.float64]
BySeed = Mapping[int, Outcome]


@dataclass(frozen=True)
class Chosen:
    """A gain over the baseline, how it was found, and the depth picked most often."""

    selection: str
    n_layers: int
    share: float  # of the picks
    value: float
    low: float | None
    high: float | None
    n: int

    def row(self, strategy: str, metric: str) -> dict[str, Any]:
        """As a row of the experiment; ``value`` is a gain."""
        return {
            "layers": self.n_layers, "strategy": strategy, "edit": None, "seed": None,
            "stage": SELECTION, "selection": self.selection, "metric": metric, "value": self.value,
            "low": self.low, "high": self.high, "n": self.n, "share": self.share,
        }  # fmt: skip


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """Pick and score from the stored logits of all arms."""
    dataset = opened_rows(request, context)
    judge = Judge.of(dataset, Path(context.where[MODEL]))
    arms: dict[int, dict[int, Outcome]] = {}
    for n_layers, seed, trial in request["arms"]:
        arrays = context.needs[trial].arrays
        assert arrays is not None
        outcome = judge.outcomes(stored_logits(arrays))[judge.metric]
        arms.setdefault(n_layers, {})[seed] = outcome
    baseline = arms.pop(request["n_baseline"])
    found = [papers_way(arms, baseline)]
    if honest := honestly(arms, baseline, clusters=dataset.clusters):
        found.append(honest)
    return Result(rows=[one.row(request["strategy"], judge.metric) for one in found])


def papers_way(arms: Mapping[int, BySeed], baseline: BySeed) -> Chosen:
    """The best of one run per depth against the baseline's mean, all on the same rows."""
    base = float(np.mean([score_on(outcome) for outcome in baseline.values()]))
    firsts = {n_layers: score_on(runs[min(runs)]) for n_layers, runs in arms.items()}
    best = max(firsts, key=lambda n_layers: firsts[n_layers])
    return Chosen(SAME, best, 1.0, firsts[best] - base, None, None, len(firsts))


def honestly(
    arms: Mapping[int, BySeed],
    baseline: BySeed,
    *,
    clusters: NDArray[np.int64] | None = None,
    n_splits: int = N_HALVES,
    seed: int = 0,
) -> Chosen | None:
    """The gain of the depth that other rows and other seeds pick; None from a single seed."""
    seeds = sorted(set.intersection(*(set(runs) for runs in (baseline, *arms.values()))))
    if len(seeds) < 2:
        return None
    n_rows = as_metric(next(iter(baseline.values()))).n_rows
    here = halves(n_rows, clusters=clusters, n_splits=n_splits, seed=seed)
    depths = sorted(arms)
    # (depths, seeds, halves): scores where a depth is picked, and gains where it is scored.
    picked_on = np.stack([[_scores(arms[k][s], here) for s in seeds] for k in depths])
    base = np.stack([_scores(baseline[s], ~here) for s in seeds])
    gains = np.stack([[_scores(arms[k][s], ~here) for s in seeds] for k in depths]) - base
    picks: Counter[int] = Counter()
    by_seed = []
    for place in range(len(seeds)):
        others = np.delete(picked_on, place, axis=1).mean(axis=1)  # (depths, halves)
        best = others.argmax(axis=0)
        picks.update(depths[index] for index in best.tolist())
        by_seed.append(float(gains[best, place, np.arange(n_splits)].mean()))
    over = over_seeds(by_seed)
    low, high = (None, None) if over.interval is None else (over.interval.low, over.interval.high)
    n_layers, count = picks.most_common(1)[0]
    return Chosen(OTHER, n_layers, count / picks.total(), over.value, low, high, len(seeds))


def _scores(outcome: Outcome, rows: NDArray[np.bool_]) -> Scores:
    """The score on each of many sets of rows (R, n) → (R,)."""
    return as_metric(outcome)(rows.astype(np.float64))
