"""Many edits without training against one baseline, on the same rows: tidy rows of it.

Each difference is paired; p-values are corrected for the number of variants by Holm, by
Benjamini–Hochberg and by max-T; the best is picked on some rows and scored on others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.statistics import (
    Comparison,
    Metric,
    accuracy_interval,
    benjamini_hochberg,
    bootstrap,
    compare_accuracy,
    compare_metric,
    holm,
    honest_gain,
    max_t,
    max_t_of_metrics,
    mean,
    mean_gain,
    naive_gain,
    smallest_gain,
    value_of,
)
from microtome.tasks import Dataset

Scores = NDArray[np.float64]
Outcome = Scores | Metric  # a score for every row, or a function of row weights
Clusters = NDArray[np.int64] | None


def baseline_row(baseline: Outcome, dataset: Dataset, *, metric: str) -> dict[str, Any]:
    """The unedited model; ``low`` and ``high`` belong to deltas, so its own interval is apart."""
    if metric == "accuracy" and isinstance(baseline, np.ndarray):
        found = accuracy_interval(baseline, clusters=dataset.clusters)
    else:
        found = bootstrap(as_metric(baseline), clusters=dataset.clusters)
    return {
        "target": "baseline", "metric": metric, "value": found.value, "value_low": found.low,
        "value_high": found.high, "delta": 0.0, "low": None, "high": None, "n": found.n,
        "p": None, "p_holm": None, "p_bh": None, "p_maxt": None,
    }  # fmt: skip


def compared(
    variants: Mapping[str, Outcome], baseline: Outcome, *, metric: str, clusters: Clusters = None
) -> list[dict[str, Any]]:
    """One row per variant; all of them together are what is corrected for."""
    if not variants:
        return []
    found = [compare(variant, baseline, clusters) for variant in variants.values()]
    p = np.array([one.p for one in found])
    corrected = zip(
        holm(p), benjamini_hochberg(p), sweep_p(variants, baseline, clusters), strict=True
    )
    base = _value(baseline)
    return [
        {
            "target": name, "metric": metric, "value": base + one.difference.value,
            "value_low": base + one.difference.low,
            "value_high": min(1.0, base + one.difference.high),
            "delta": one.difference.value, "low": one.difference.low, "high": one.difference.high,
            "n": one.difference.n, "p": one.p, "p_holm": float(p_holm), "p_bh": float(p_bh),
            "p_maxt": float(p_maxt),
        }
        for name, one, (p_holm, p_bh, p_maxt) in zip(variants, found, corrected, strict=True)
    ]  # fmt: skip


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


def sweep_p(variants: Mapping[str, Outcome], baseline: Outcome, clusters: Clusters) -> Scores:
    """Max-T by shared sign flips."""
    if isinstance(baseline, np.ndarray):
        return max_t(_matrix(variants.values()), baseline, clusters=clusters).p
    return max_t_of_metrics(
        [as_metric(v) for v in variants.values()], baseline, clusters=clusters
    ).p


def picked(
    names: Sequence[str], variants: Sequence[Outcome], baseline: Outcome, *, clusters: Clusters
) -> dict[str, Any]:
    """What the best variant is worth, the papers' way and honestly; the mean of all variants."""
    tried: Any = [as_metric(variant) for variant in variants]
    if isinstance(baseline, np.ndarray):
        tried = _matrix(variants)
    naive = naive_gain(tried, baseline, clusters=clusters)
    honest = honest_gain(tried, baseline, clusters=clusters)
    row = {
        "naive_gain": naive.gain.value, "naive_target": names[naive.variant],
        "honest_gain": honest.gain.value, "honest_low": honest.gain.low,
        "honest_high": honest.gain.high, "honest_target": names[honest.picks[0][0]],
        "honest_share": honest.picks[0][1],
    }  # fmt: skip
    if isinstance(baseline, np.ndarray):
        average = mean_gain(tried, baseline, clusters=clusters)
        row |= {"mean_delta": average.value, "mean_low": average.low, "mean_high": average.high}
        row["smallest_significant"] = _smallest(tried, baseline, clusters)
    return row


def _smallest(tried: Scores, baseline: Scores, clusters: Clusters) -> float:
    """The smallest gain that could have been significant here."""
    if clusters is None and _are_answers(baseline):
        return smallest_gain(len(baseline), len(tried))
    return float(max_t(tried, baseline, clusters=clusters).needed.min())


def _matrix(variants: Any) -> Scores:  # noqa: ANN401  # any collection of score arrays
    return np.stack(list(variants))


def _are_answers(scores: Scores) -> bool:
    return bool(np.isin(scores, (0.0, 1.0)).all())


def as_metric(outcome: Outcome) -> Metric:
    """Scores by row as the metric that is their mean; a metric as it is."""
    return mean(outcome) if isinstance(outcome, np.ndarray) else outcome


def _value(outcome: Outcome) -> float:
    return value_of(as_metric(outcome))
