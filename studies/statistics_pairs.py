"""Settings for two models on the same rows, and for sweeps of many variants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np

from microtome import statistics as st
from statistics_cells import BOOTSTRAP, Cell, Rng, clustered_rows, seed_of

ACCURACY = 0.85  # of every baseline here
Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]  # gold, baseline, variant


def flips(
    rng: Rng, base: np.ndarray, gained: float, lost: float, fragile: np.ndarray
) -> np.ndarray:
    """Answers of a variant that turns these shares of all rows right and wrong.

    ``fragile`` (mean 1) says how much more easily than others a row flips, in every variant.
    """
    chance = np.where(base == 1, lost / ACCURACY, gained / (1 - ACCURACY)) * fragile
    return np.where(rng.random(base.shape) < chance, 1 - base, base)


@cache
def _tango(gained: int, lost: int, n: int) -> tuple[float, float]:
    low, high = st.tango(gained, lost, n)
    return float(low), float(high)


def tango_cells() -> Iterator[Cell]:
    for n in (100, 277, 408, 1500):
        for changed in (0.02, 0.06, 0.15):
            for difference in (0.0, 0.015):

                def draw(rng: Rng, n=n, changed=changed, difference=difference) -> st.Interval:
                    gained, lost = (changed + difference) / 2, (changed - difference) / 2
                    counts = rng.multinomial(n, (gained, lost, 1 - changed))
                    value = (counts[0] - counts[1]) / n
                    return st.Interval(value, *_tango(int(counts[0]), int(counts[1]), n), n)

                setting = f"n={n} changed={changed} difference={difference}"
                yield Cell("accuracy difference (Tango)", setting, difference, draw)


def _boot(a: st.Metric, b: st.Metric, rng: Rng, clusters: np.ndarray | None = None) -> st.Interval:
    return st.paired_bootstrap(a, b, clusters=clusters, repeats=BOOTSTRAP, seed=seed_of(rng))


def answers(rng: Rng, n: int, changed: float) -> Drawn:
    """Gold labels (68 % positive), a baseline that is 85 % right, a variant that moves ``changed``.

    The variant turns 3 of 4 changed answers wrong, so there is a difference to cover.
    """
    gold = (rng.random(n) < 0.68).astype(int)
    right = rng.random(n) < 0.85
    flip = rng.random(n) < np.where(right, 0.75 * changed / 0.85, 0.25 * changed / 0.15)
    return gold, np.where(right, gold, 1 - gold), np.where(right ^ flip, gold, 1 - gold)


def _true_difference(metric: Callable[..., st.Metric], draw: Callable[..., Drawn], *sizes) -> float:
    gold, base, variant = draw(np.random.default_rng(1), *sizes)
    return st.value_of(metric(variant, gold)) - st.value_of(metric(base, gold))


def difference_cells() -> Iterator[Cell]:
    for metric in (st.f1, st.matthews):
        for n in (100, 408, 1043):
            for changed in (0.02, 0.06):
                truth = partial(_true_difference, metric, answers, 4_000_000, changed)

                def draw(rng: Rng, metric=metric, n=n, changed=changed) -> st.Interval:
                    gold, base, variant = answers(rng, n, changed)
                    return _boot(metric(variant, gold), metric(base, gold), rng)

                name = f"{metric.__name__} difference (bootstrap)"
                yield Cell(name, f"n={n} changed={changed}", truth, draw)


def _similar(rng: Rng, n: int) -> Drawn:
    gold = rng.integers(0, 26, n) / 5
    base = gold + 0.7 * rng.normal(size=n)
    return gold, base, base + 0.2 * rng.normal(size=n)


def correlation_difference_cells() -> Iterator[Cell]:
    for metric in (st.pearson, st.spearman):
        truth = partial(_true_difference, metric, _similar, 2_000_000)
        for n in (100, 400):

            def draw(rng: Rng, metric=metric, n=n) -> st.Interval:
                gold, base, variant = _similar(rng, n)
                return _boot(metric(variant, gold), metric(base, gold), rng)

            yield Cell(f"{metric.__name__} difference (bootstrap)", f"n={n}", truth, draw)


def cluster_difference_cells() -> Iterator[Cell]:
    for n_clusters, size, alike in ((35, 340, 50), (200, 5, 3)):

        def draw(rng: Rng, n=n_clusters, size=size, alike=alike) -> st.Interval:
            right, clusters = clustered_rows(rng, n, size, 0.75, alike)
            # Rows change more often in some clusters than in others, and all in one direction.
            flip = rng.random(len(right)) < 0.06 * rng.gamma(2, 0.5, n)[clusters]
            toward = rng.random(n) < 0.5
            changed = np.where(flip, toward[clusters].astype(float), right)
            return _boot(st.mean(changed), st.mean(right), rng, clusters)

        setting = f"clusters={n_clusters} of about {size + 1} changed=0.06"
        name = "accuracy difference (bootstrap by cluster)"
        yield Cell(name, setting, 0.06 * (0.5 - 0.75), draw)


def sweep(
    rng: Rng,
    n: int,
    n_variants: int,
    changed: float,
    *,
    gain: float = 0.0,
    alike: bool = False,
    loud: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Variants (V, n) that flip ``changed`` of the rows by chance; the first also gains ``gain``.

    ``alike``: all flips fall on the same third of the rows, so the variants move together.
    ``loud``: so many of the variants flip 10 % of the rows.
    """
    base = (rng.random(n) < ACCURACY).astype(np.float64)
    fragile = 3.0 * (rng.random(n) < 1 / 3) if alike else np.ones(n)
    quiet = flips(rng, np.tile(base, (n_variants - loud, 1)), changed / 2, changed / 2, fragile)
    noisy = flips(rng, np.tile(base, (loud, 1)), 0.05, 0.05, fragile)
    if gain:
        quiet[0] = flips(rng, base, changed / 2 + gain, changed / 2, np.ones(n))
    return np.concatenate([quiet, noisy]), base
