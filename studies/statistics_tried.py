"""The usual ways that were tried and don't hold: shown beside the grid, without a bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from microtome import statistics as st
from microtome.statistics.resampling import Units, draw_counts
from statistics_cells import (
    BOOTSTRAP,
    GOLD,
    PREDICTED,
    Cell,
    Rng,
    clustered_rows,
    kinds,
    similarity,
    similarity_truth,
)


def percentiles(metric: st.SumMetric, rng: Rng, clusters: np.ndarray | None = None) -> st.Interval:
    """The plain percentile bootstrap."""
    columns = Units.of(clusters, metric.n_rows).sums(metric.columns)
    draws = metric.of_sums(draw_counts(len(columns), BOOTSTRAP, rng) @ columns)
    low, high = np.quantile(draws, (0.025, 0.975))
    return st.Interval(0.0, float(low), float(high), metric.n_rows)


def bias_corrected(metric: st.SumMetric, rng: Rng) -> st.Interval:
    """The BCa bootstrap: percentiles moved by the bias and the acceleration."""
    from scipy.special import ndtr, ndtri

    n, value = metric.n_rows, st.value_of(metric)
    draws = metric(draw_counts(n, BOOTSTRAP, rng))
    share_below = ((draws < value).mean() + (draws <= value).mean()) / 2
    bias = ndtri(np.clip(share_below, 1e-3, 1 - 1e-3))
    without = metric.of_sums(metric.columns.sum(axis=0) - metric.columns)
    pull = without.mean() - without
    acceleration = (pull**3).sum() / max(6 * (pull**2).sum() ** 1.5, 1e-30)
    z = bias + np.array([-1.96, 1.96])
    low, high = np.quantile(draws, ndtr(bias + z / (1 - acceleration * z)))
    return st.Interval(value, float(low), float(high), n)


def table_tried() -> Iterator[Cell]:
    ways: tuple[tuple[str, Callable[[st.SumMetric, Rng], st.Interval]], ...] = (
        ("percentile bootstrap", percentiles),
        ("BCa bootstrap", bias_corrected),
    )
    for way, interval in ways:
        for metric in (st.f1, st.matthews):
            for n, positive, sensitivity, specificity in (
                (100, 0.5, 0.98, 0.98),
                (100, 0.05, 0.8, 0.99),
            ):
                shares = kinds(positive, sensitivity, specificity)

                def draw(rng: Rng, metric=metric, n=n, shares=shares, interval=interval):
                    kind = rng.choice(4, p=shares, size=n)
                    return interval(metric(PREDICTED[kind], GOLD[kind]), rng)

                truth = float(metric(PREDICTED, GOLD)(1000 * shares[None])[0])
                setting = f"n={n} positive={positive} sens={sensitivity} spec={specificity}"
                yield Cell(f"tried: {metric.__name__} ({way})", setting, truth, draw, False)


def other_tried() -> Iterator[Cell]:
    noise = "Laplace 0.5"
    truth = partial(similarity_truth, st.pearson, noise)
    for way, interval in (("percentile", percentiles), ("BCa", bias_corrected)):
        yield Cell(
            f"tried: pearson ({way} bootstrap)",
            f"n=100 noise={noise}",
            truth,
            lambda rng, interval=interval: interval(st.pearson(*similarity(rng, 100, noise)), rng),
            False,
        )
    for n_clusters, size, p, alike in ((35, 340, 0.75, 50), (50, 20, 0.98, 10)):

        def draw(rng: Rng, n=n_clusters, size=size, p=p, alike=alike) -> st.Interval:
            right, clusters = clustered_rows(rng, n, size, p, alike)
            return percentiles(st.mean(right), rng, clusters)

        setting = f"clusters={n_clusters} of about {size + 1} p={p} beta={alike}"
        yield Cell("tried: accuracy (percentile bootstrap by cluster)", setting, p, draw, False)
    yield Cell(
        "tried: mean over seeds (percentile bootstrap)",
        "seeds=3",
        0.5,
        lambda rng: percentiles(st.mean(0.5 + 0.01 * rng.normal(size=3)), rng),
        False,
    )
    yield Cell("tried: difference over seeds (Welch)", WELCH, 0.0, plain_welch, False)


WELCH = "seeds=3 and 10 spread ratio=3"


def plain_welch(rng: Rng) -> st.Interval:
    from scipy.stats import ttest_ind

    edited, base = 0.03 * rng.normal(size=3), 0.01 * rng.normal(size=10)
    low, high = ttest_ind(edited, base, equal_var=False).confidence_interval()
    return st.Interval(0.0, float(low), float(high), 13)
