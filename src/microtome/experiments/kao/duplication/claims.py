"""The papers' claims about duplication, as these rows answer them."""

from __future__ import annotations

from collections.abc import Sequence

from microtome.experiments.kao.duplication.depth_comparison import (
    DepthComparison,
    baseline_not_learnt,
    compare_depths,
    trained_depths,
)
from microtome.experiments.kao.duplication.report import decoded_finding, picked_finding
from microtome.experiments.kao.duplication.strategies import is_deeper
from microtome.experiments.kit.wording import change, counted
from microtome.views import TidyRows


def claims(rows: TidyRows) -> dict[str, str]:
    """A claim's key → what was measured; a claim that these rows don't touch is left out."""
    comparisons = compare_depths(trained_depths(rows))
    first = [comparison for comparison in comparisons if comparison.depth.strategy == "first"]
    gain = baseline_not_learnt(rows) or picked_finding(rows, "first")
    answers = {"gain": gain, "decoded": decoded_finding(rows)}
    if first:
        best = max(first, key=lambda comparison: comparison.difference.value)
        added = best.depth.n_layers - best.baseline.n_layers
        answers["how many"] = f"highest mean with {added} more; {best.sentence}"
        if str(rows[0].get("task", "")).startswith("sst2"):
            answers["easy task"] = best.sentence
    strategies = dict.fromkeys(
        comparison.depth.strategy
        for comparison in comparisons
        if is_deeper(comparison.depth.strategy)
    )
    if len(strategies) > 1:
        answers["which"] = "; ".join(_mean_change(comparisons, name) for name in strategies)
    return {key: text for key, text in answers.items() if text}


def _mean_change(comparisons: Sequence[DepthComparison], strategy: str) -> str:
    gains = [
        comparison.difference.value
        for comparison in comparisons
        if comparison.depth.strategy == strategy
    ]
    mean = change(sum(gains) / len(gains))
    return f"{strategy}: {mean}, mean of {counted(len(gains), 'depth')}"
