"""Many edits without training against one baseline, on the same rows: tidy rows of it.

Each difference is paired; p-values are corrected for the number of variants by Holm, by
Benjamini–Hochberg and by max-T; the best is picked on some rows and scored on others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.statistics import (
    Comparison,
    Interval,
    MaxT,
    Metric,
    SweepGains,
    accuracy_interval,
    benjamini_hochberg,
    bootstrap,
    compare_accuracy,
    compare_metric,
    gain_on_second_split,
    holm,
    honest_gain,
    max_t,
    max_t_of_metrics,
    mean,
    mean_gain,
    naive_gain,
    smallest_gain,
    sweep_gains,
    value_of,
)
from microtome.tasks import Dataset
from microtome.tasks.task import UNIT_OF

Scores = NDArray[np.float64]
Outcome = Scores | Metric  # a score for every row, or a function of row weights
Clusters = NDArray[np.int64] | None


def baseline_row(baseline: Outcome, dataset: Dataset, *, metric: str) -> dict[str, Any]:
    """The unedited model; ``low`` and ``high`` belong to deltas, so its own interval is apart."""
    found = score_interval(baseline, dataset.scored_clusters, metric=metric)
    return {
        "target": "baseline", "metric": metric, "value": found.value, "value_low": found.low,
        "value_high": found.high, "delta": 0.0, "low": None, "high": None, "n": found.n,
        "p": None, "p_holm": None, "p_bh": None, "p_maxt": None,
        "unit": UNIT_OF.get(dataset.task.kind, "rows"),
    }  # fmt: skip


def score_interval(found: Outcome, clusters: Clusters, *, metric: str) -> Interval:
    """A model's score with its interval: Wilson's for accuracy, else by resampling."""
    if metric == "accuracy" and isinstance(found, np.ndarray):
        return accuracy_interval(found, clusters=clusters)
    return bootstrap(as_metric(found), clusters=clusters)


@dataclass(frozen=True, eq=False)
class VariantSweep:
    """Variants by name against their baseline, by one metric on the same rows.

    What its rows and its selection both need (the resamples of 144 heads) is computed once.
    """

    variants: Mapping[str, Outcome]
    baseline: Outcome
    clusters: Clusters = None

    def rows(self, metric: str) -> list[dict[str, Any]]:
        """One row per variant; all of them together are what is corrected for."""
        if not self.variants:
            return []
        differences = self._comparisons()
        p = np.array([compared.p for compared in differences])
        corrected = zip(holm(p), benjamini_hochberg(p), self._max_t.p, strict=True)
        base = _value(self.baseline)
        return [
            {
                "target": name, "metric": metric, "value": base + gain.value,
                "value_low": base + gain.low, "value_high": min(1.0, base + gain.high),
                "delta": gain.value, "low": gain.low, "high": gain.high, "n": gain.n,
                "p": compared.p, "p_holm": float(p_holm), "p_bh": float(p_bh),
                "p_maxt": float(p_maxt),
            }
            for name, compared, (p_holm, p_bh, p_maxt) in zip(
                self.variants, differences, corrected, strict=True
            )
            for gain in (compared.difference,)
        ]  # fmt: skip

    def best(self) -> dict[str, Any]:
        """What the best variant is worth: picked and scored on the same rows, and honestly."""
        names = list(self.variants)
        naive = naive_gain(self._variants, self.baseline, clusters=self.clusters)
        honest = honest_gain(self._variants, self.baseline, clusters=self.clusters)
        return {
            "naive_gain": naive.gain.value, "naive_target": names[naive.variant],
            "honest_gain": honest.gain.value, "honest_low": honest.gain.low,
            "honest_high": honest.gain.high, "honest_target": names[honest.picks[0][0]],
            "honest_share": honest.picks[0][1],
        }  # fmt: skip

    def selection(self) -> dict[str, Any]:
        """The best variant, the mean of all variants, and what could have been significant."""
        average = (
            mean_gain(self._variants, self.baseline, clusters=self.clusters)
            if self._gains is None
            else self._gains.mean
        )
        return {
            **self.best(), "mean_delta": average.value, "mean_low": average.low,
            "mean_high": average.high, "smallest_significant": self._smallest(),
        }  # fmt: skip

    def on_second_split(
        self,
        scored_on: Callable[[str], tuple[Outcome, Outcome]],
        *,
        metric: str,
        clusters: Clusters,
    ) -> dict[str, Any]:
        """A row of the best variant, picked on these rows and scored on those of another split.

        ``scored_on(name)`` gives a variant and the baseline there; ``clusters`` are the split's.
        """
        names = list(self.variants)
        scored: dict[str, Outcome] = {}

        def on_split(variant: int) -> tuple[Outcome, Outcome]:
            changed, scored["baseline"] = scored_on(names[variant])
            return changed, scored["baseline"]

        found = gain_on_second_split(self._variants, self.baseline, on_split, clusters=clusters)
        gain = found.gain
        return {
            "target": names[found.variant], "metric": metric,
            "value": _value(scored["baseline"]) + gain.value, "delta": gain.value,
            "low": gain.low, "high": gain.high, "n": gain.n,
        }  # fmt: skip

    def _comparisons(self) -> list[Comparison]:
        if self._gains is None:
            return [compare(v, self.baseline, self.clusters) for v in self.variants.values()]
        tests = zip(self._gains.each, self._max_t.p_single.tolist(), strict=True)
        return [Comparison(gain, p, "paired swap permutation") for gain, p in tests]

    def _smallest(self) -> float:
        """The smallest gain that could have been significant here."""
        rows = self.baseline
        if self.clusters is None and isinstance(rows, np.ndarray) and _are_answers(rows):
            return smallest_gain(len(rows), len(self.variants))
        return float(self._max_t.needed.min())

    @cached_property
    def _variants(self) -> Any:  # noqa: ANN401  # a matrix of scores, or a list of metrics
        if isinstance(self.baseline, np.ndarray):
            return np.stack([np.asarray(variant) for variant in self.variants.values()])
        return [as_metric(variant) for variant in self.variants.values()]

    @cached_property
    def _gains(self) -> SweepGains | None:
        """Of metrics, all variants' gains on shared resamples; scores by row have better tests."""
        if isinstance(self.baseline, np.ndarray):
            return None
        return sweep_gains(self._variants, self.baseline, clusters=self.clusters)

    @cached_property
    def _max_t(self) -> MaxT:
        if isinstance(self.baseline, np.ndarray):
            return max_t(self._variants, self.baseline, clusters=self.clusters)
        return max_t_of_metrics(self._variants, self.baseline, clusters=self.clusters)


def compare(
    variant: Outcome, baseline: Outcome, clusters: Clusters, *, level: float = 0.95
) -> Comparison:
    """Exact McNemar and a score interval where rows are right or wrong, else resampling."""
    if not (isinstance(variant, np.ndarray) and isinstance(baseline, np.ndarray)):
        return compare_metric(
            as_metric(variant), as_metric(baseline), clusters=clusters, level=level
        )
    if _are_answers(variant) and _are_answers(baseline):
        return compare_accuracy(variant, baseline, clusters=clusters, level=level)
    return compare_metric(mean(variant), mean(baseline), clusters=clusters, level=level)


def _are_answers(scores: Scores) -> bool:
    return bool(np.isin(scores, (0.0, 1.0)).all())


def as_metric(outcome: Outcome) -> Metric:
    """Scores by row as the metric that is their mean; a metric as it is."""
    return mean(outcome) if isinstance(outcome, np.ndarray) else outcome


def _value(outcome: Outcome) -> float:
    return value_of(as_metric(outcome))
