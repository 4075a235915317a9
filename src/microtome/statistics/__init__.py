"""Intervals, paired tests, corrections and honest selection. Imports no torch.

Scores are 0-1. Rows are independent unless ``clusters`` names what they belong to. Everything
random takes a ``seed`` and gives the same answer again. For example, two models on the same rows::

    compare_accuracy([1, 1, 0, 1], [1, 0, 0, 1]).difference.value      # 0.25
    compare_metric(f1(predicted, gold), f1(of_baseline, gold)).p
"""

from __future__ import annotations

from microtome.statistics.corrections import (
    MaxT,
    benjamini_hochberg,
    holm,
    max_t,
    max_t_of_metrics,
    smallest_gain,
)
from microtome.statistics.intervals import Interval, wilson
from microtome.statistics.paired import (
    Comparison,
    compare_accuracy,
    compare_metric,
    mcnemar,
    paired_bootstrap,
    swap_permutation,
    tango,
)
from microtome.statistics.ranks import minus, spearman
from microtome.statistics.resampling import accuracy_interval, bootstrap
from microtome.statistics.seeds import (
    INSEPARABLE,
    SeedDifference,
    SeedScore,
    compare_seeds,
    detectable_difference,
    flip_spread,
    over_seeds,
)
from microtome.statistics.selection import (
    gain_on_second_split,
    halves,
    honest_choice,
    honest_gain,
    mean_gain,
    naive_gain,
)
from microtome.statistics.sweeps import SweepGains, sweep_gains
from microtome.statistics.weighted import (
    Metric,
    SumMetric,
    accuracy,
    f1,
    macro_f1,
    matthews,
    mean,
    micro_f1,
    pearson,
    pooled_f1,
    share,
    value_of,
)

__all__ = [
    "INSEPARABLE",
    "Comparison",
    "Interval",
    "MaxT",
    "Metric",
    "SeedDifference",
    "SeedScore",
    "SumMetric",
    "SweepGains",
    "accuracy",
    "accuracy_interval",
    "benjamini_hochberg",
    "bootstrap",
    "compare_accuracy",
    "compare_metric",
    "compare_seeds",
    "detectable_difference",
    "f1",
    "flip_spread",
    "gain_on_second_split",
    "halves",
    "holm",
    "honest_choice",
    "honest_gain",
    "macro_f1",
    "matthews",
    "max_t",
    "max_t_of_metrics",
    "mcnemar",
    "mean",
    "mean_gain",
    "micro_f1",
    "minus",
    "naive_gain",
    "over_seeds",
    "paired_bootstrap",
    "pearson",
    "pooled_f1",
    "share",
    "smallest_gain",
    "spearman",
    "swap_permutation",
    "sweep_gains",
    "tango",
    "value_of",
    "wilson",
]
