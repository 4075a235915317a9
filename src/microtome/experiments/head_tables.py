"""One number per text and head, as tables: means with intervals over texts, and heat maps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from microtome.experiments.experiment import Row, Rows
from microtome.views import HeatMap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REPEATS = 1000


@dataclass(frozen=True, eq=False)
class HeadScores:
    """Means (layers, heads) over ``n`` texts, with 95 % intervals by text or cluster of texts."""

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    n: int

    def at(self, *place: int) -> dict[str, Any]:
        """mean, low, high and n of one head; None where there is no number."""
        ends = {name: number(getattr(self, name)[place]) for name in ("mean", "low", "high")}
        return {**ends, "n": self.n}


def head_scores(
    values: NDArray[Any], *, clusters: NDArray[np.int64] | None = None, seed: int = 0
) -> HeadScores:
    """Average (texts, …) over texts; a text with NaN has nothing to say and is left out.

    The interval is a bootstrap over texts, or over clusters of them; below two of those it is NaN.
    """
    import numpy as np

    from microtome.statistics.resampling import Units, chunk_sizes, draw_counts, tail_of

    shape = values.shape[1:]
    flat = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    there = ~np.isnan(flat).any(axis=1)
    flat = flat[there]
    nothing = np.full(shape, np.nan)
    if not len(flat):
        return HeadScores(nothing, nothing, nothing, 0)
    mean = flat.mean(axis=0).reshape(shape)
    units = Units.of(None if clusters is None else clusters[there], len(flat))
    if units.n < 2:
        return HeadScores(mean, nothing, nothing, len(flat))
    rng = np.random.default_rng(seed)
    drawn = []
    for size in chunk_sizes(REPEATS, units.n_rows):
        weights = units.spread(draw_counts(units.n, size, rng))
        drawn.append(weights @ flat / weights.sum(axis=1, keepdims=True))
    tail = tail_of(0.95, units.n)
    sample = np.concatenate(drawn)
    low = np.quantile(sample, tail, axis=0, method="lower").reshape(shape)
    high = np.quantile(sample, 1 - tail, axis=0, method="higher").reshape(shape)
    return HeadScores(mean, np.minimum(low, mean), np.maximum(high, mean), len(flat))


def beyond_chance(
    differences: NDArray[Any], *, clusters: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """p-values (layers, heads) of the mean difference over texts (texts, layers, heads).

    Max-T over all heads by sign flips that the heads share; texts with NaN are left out.
    """
    import numpy as np

    from microtome.statistics import max_t

    shape = differences.shape[1:]
    flat = np.asarray(differences, dtype=np.float64).reshape(len(differences), -1)
    there = ~np.isnan(flat).any(axis=1)
    if not there.any():
        return np.full(shape, np.nan)
    flat = flat[there]
    own = None if clusters is None else clusters[there]
    return max_t(flat.T, np.zeros(len(flat)), clusters=own).p.reshape(shape)


def number(value: Any) -> float | None:  # noqa: ANN401  # any scalar
    """A plain number; None for NaN, which a row may not hold."""
    plain = float(value)
    return None if math.isnan(plain) else plain


def name_of(row: Row) -> str:
    """A head's name: 3.7."""
    return f"{row['layer']}.{row['head']}"


def head_map(
    title: str,
    rows: Rows,
    column: str,
    *,
    value_label: str,
    marked: Callable[[Row], bool] = lambda row: False,
    diverging: bool = False,
    percent: bool = False,
) -> HeatMap:
    """Layer by head, one row of ``rows`` for each."""
    by_place = {(row["layer"], row["head"]): row for row in rows}
    layers = sorted({layer for layer, _ in by_place})
    heads = sorted({head for _, head in by_place})
    cells = [[by_place.get((i, j)) for j in heads] for i in layers]
    return HeatMap(
        title=title,
        row_label="layer",
        column_label="head",
        rows=tuple(map(str, layers)),
        columns=tuple(map(str, heads)),
        values=tuple(tuple(None if row is None else row[column] for row in line) for line in cells),
        value_label=value_label,
        marked=tuple(
            (i, j)
            for i, line in enumerate(cells)
            for j, row in enumerate(line)
            if row is not None and marked(row)
        ),
        diverging=diverging,
        percent=percent,
    )
