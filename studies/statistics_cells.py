"""Settings with a known truth and the intervals that should hold it: one model, arms of seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from microtome import statistics as st

BOOTSTRAP = 500  # repeats inside the study; the default, 2000, is smoother
Rng = np.random.Generator


@dataclass(frozen=True)
class Cell:
    """One setting: data drawn from a known truth, and the interval that should hold it."""

    statistic: str
    setting: str
    truth: float | Callable[[], float]  # a function where it takes long
    draw: Callable[[Rng], st.Interval]
    in_grid: bool = True  # False: a known weak spot, shown without a bar

    def true_value(self) -> float:
        return self.truth() if callable(self.truth) else self.truth


def wilson_cells() -> Iterator[Cell]:
    for n in (100, 277, 408, 1500, 9815):
        for p in (0.5, 0.7, 0.9, 0.98):
            yield Cell(
                "accuracy (Wilson)",
                f"n={n} p={p}",
                p,
                lambda rng, n=n, p=p: st.wilson(int(rng.binomial(n, p)), n),
            )
    n, p = 100, 0.9985
    yield Cell(
        "accuracy (Wilson)",
        f"n={n} p={p}",
        p,
        lambda rng: st.wilson(int(rng.binomial(n, p)), n),
        in_grid=False,
    )


def _boot(metric: st.Metric, rng: Rng, clusters: np.ndarray | None = None) -> st.Interval:
    return st.bootstrap(metric, clusters=clusters, repeats=BOOTSTRAP, seed=seed_of(rng))


def seed_of(rng: Rng) -> int:
    return int(rng.integers(2**31))


PREDICTED, GOLD = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])


def kinds(positive: float, sensitivity: float, specificity: float) -> np.ndarray:
    """Shares of (gold, predicted) = 00, 01, 10, 11."""
    negative = 1 - positive
    return np.array(
        [
            negative * specificity,
            negative * (1 - specificity),
            positive * (1 - sensitivity),
            positive * sensitivity,
        ]
    )


TABLES = (  # n, share of positives, sensitivity, specificity
    (50, 0.5, 0.9, 0.9),
    (100, 0.5, 0.98, 0.98),
    (100, 0.05, 0.8, 0.99),
    (100, 0.7, 0.99, 0.1),
    (277, 0.5, 0.7, 0.6),
    (408, 0.68, 0.93, 0.75),
    (1043, 0.7, 0.95, 0.6),
)


def table_cells() -> Iterator[Cell]:
    for metric in (st.f1, st.matthews):
        for n, positive, sensitivity, specificity in TABLES:
            shares = kinds(positive, sensitivity, specificity)

            def draw(rng: Rng, metric=metric, n=n, shares=shares) -> st.Interval:
                kind = rng.choice(4, p=shares, size=n)
                return _boot(metric(PREDICTED[kind], GOLD[kind]), rng)

            truth = float(metric(PREDICTED, GOLD)(1000 * shares[None])[0])
            setting = f"n={n} positive={positive} sens={sensitivity} spec={specificity}"
            yield Cell(f"{metric.__name__} (bootstrap)", setting, truth, draw)


def similarity(rng: Rng, n: int, noise: str) -> tuple[np.ndarray, np.ndarray]:
    """Graded pairs 0, 0.2, ... 5 and predictions with noise around them."""
    gold = rng.integers(0, 26, n) / 5
    drawn = {
        "normal 0.7": lambda: 0.7 * rng.normal(size=n),
        "normal 3": lambda: 3 * rng.normal(size=n),
        "Laplace 0.5": lambda: 0.5 * rng.laplace(size=n),
        "t(4) 0.5": lambda: 0.5 * rng.standard_t(4, size=n),
    }
    return gold + drawn[noise](), gold


NOISES = ("normal 0.7", "normal 3", "Laplace 0.5", "t(4) 0.5")


def similarity_truth(metric: Callable[..., st.Metric], noise: str) -> float:
    return st.value_of(metric(*similarity(np.random.default_rng(1), 2_000_000, noise)))


def correlation_cells() -> Iterator[Cell]:
    for metric in (st.pearson, st.spearman):
        for n, noises in ((100, NOISES), (400, NOISES[:1])):
            for noise in noises:
                yield Cell(
                    f"{metric.__name__} (bootstrap)",
                    f"n={n} noise={noise}",
                    partial(similarity_truth, metric, noise),
                    lambda rng, metric=metric, n=n, noise=noise: _boot(
                        metric(*similarity(rng, n, noise)), rng
                    ),
                    # Student's t(4) has no fourth moment, which Pearson's spread is made of.
                    in_grid=not (metric is st.pearson and noise.startswith("t(4)")),
                )


def mean_cells() -> Iterator[Cell]:
    for n, wrong, right in ((100, 0.1, 0.8), (300, 0.02, 0.9), (1000, 0.25, 0.6)):

        def draw(rng: Rng, n=n, wrong=wrong, right=right) -> st.Interval:
            kind, partly = rng.random(n), rng.random(n)
            scores = np.where(kind < wrong, 0.0, np.where(kind < wrong + right, 1.0, partly))
            return _boot(st.mean(scores), rng)

        truth = right + (1 - wrong - right) / 2
        setting = f"n={n} none={wrong} full={right}"
        yield Cell("token F1 per row (bootstrap)", setting, truth, draw)


def clustered_rows(
    rng: Rng, n_clusters: int, size: int, p: float, alike: float
) -> tuple[np.ndarray, np.ndarray]:
    """Right and wrong rows in clusters, each with its own accuracy (beta, mean p)."""
    sizes = rng.poisson(size, n_clusters) + 1
    accuracy = rng.beta(p * alike, (1 - p) * alike, n_clusters)
    clusters = np.repeat(np.arange(n_clusters), sizes)
    return (rng.random(len(clusters)) < accuracy[clusters]).astype(np.float64), clusters


CLUSTERS = (  # clusters, mean size, accuracy, beta's concentration, in the grid
    (20, 30, 0.75, 20, True),
    (35, 340, 0.75, 50, True),
    (50, 20, 0.98, 10, True),
    (200, 5, 0.9, 3, True),
    (200, 20, 0.98, 10, True),
    (500, 20, 0.999, 5, False),
)


def cluster_cells() -> Iterator[Cell]:
    for n_clusters, size, p, alike, in_grid in CLUSTERS:

        def draw(rng: Rng, n=n_clusters, size=size, p=p, alike=alike) -> st.Interval:
            right, clusters = clustered_rows(rng, n, size, p, alike)
            return _boot(st.mean(right), rng, clusters)

        setting = f"clusters={n_clusters} of about {size + 1} p={p} beta={alike}"
        yield Cell("accuracy (bootstrap by cluster)", setting, p, draw, in_grid)


def seed_cells() -> Iterator[Cell]:
    def arm(rng: Rng, n: int, spread: float) -> np.ndarray:
        return 0.9 + spread * rng.normal(size=n)

    for n in (3, 5, 10):
        yield Cell(
            "mean over seeds (t)",
            f"seeds={n}",
            0.9,
            lambda rng, n=n: st.over_seeds(arm(rng, n, 0.01)).interval,
        )
    for n, m, ratio in ((3, 3, 1), (3, 3, 4), (5, 3, 1), (3, 10, 3), (10, 10, 1)):
        yield Cell(
            "difference over seeds",
            f"seeds={n} and {m} spread ratio={ratio}",
            0.0,
            lambda rng, n=n, m=m, ratio=ratio: (
                st.compare_seeds(arm(rng, n, 0.01 * ratio), arm(rng, m, 0.01)).interval
            ),
        )
