"""One number per text and head, as tables: means with intervals over texts, and heat maps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.experiments.kit.wording import listed
from microtome.statistics.resampling import Units, chunk_sizes, draw_counts, tail_of
from microtome.views import HeatMap, TidyRow, TidyRows

REPEATS = 1000
TIE = 1e-12
MOST_NAMED = 3  # heads in a sentence; more are counted
READABLE = 12  # tokens of a map whose cells can be told apart on a telephone
DECIMALS = 4  # of the weights of a map that is kept whole


@dataclass(frozen=True, eq=False)
class HeadScores:
    """Means (layers, heads) over ``n`` texts, with 95 % intervals by text or cluster of texts."""

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    n: int


def head_scores(
    values: NDArray[Any], *, clusters: NDArray[np.int64] | None = None, seed: int = 0
) -> HeadScores:
    """Average (texts, …) over texts; a text with NaN has nothing to say and is left out.

    The interval is a bootstrap over texts, or over clusters of them; below two of those it is NaN.
    """
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


def p_of_mean(
    differences: NDArray[Any], *, clusters: NDArray[np.int64] | None = None, seed: int = 0
) -> NDArray[np.float64]:
    """p-values (layers, heads) of the mean difference over texts (texts, layers, heads).

    Corrected for looking at all heads, two-sided; texts with NaN are left out, below two texts (or
    clusters) it is NaN. Differences are skewed, so flipping their signs would reject too often: a
    bootstrap over texts shows how far up and how far down the largest standardised mean of any
    head goes by chance. Spreads are moderated by the typical head's, as in ``max_t``.
    """
    shape = differences.shape[1:]
    flat = np.asarray(differences, dtype=np.float64).reshape(len(differences), -1)
    there = ~np.isnan(flat).any(axis=1)
    nothing = np.full(shape, np.nan)
    if not there.any():
        return nothing
    units = Units.of(None if clusters is None else clusters[there], int(there.sum()))
    if units.n < 2:
        return nothing
    by_unit = units.sums(flat[there])  # (units, V)
    mean = by_unit.mean(axis=0)
    centred = by_unit - mean
    variance = (centred**2).mean(axis=0)
    typical = np.median(variance[variance > 0]) if (variance > 0).any() else 1.0
    rng = np.random.default_rng(seed)
    drawn = []
    for size in chunk_sizes(REPEATS, units.n):
        counts = draw_counts(units.n, size, rng)
        moved = counts @ centred / units.n
        spread = np.maximum(counts @ centred**2 / units.n - moved**2, 0.0)
        drawn.append(moved / np.sqrt(spread + typical))
    chance, observed = np.concatenate(drawn), mean / np.sqrt(variance + typical)
    n_up = (chance.max(axis=1)[:, None] >= observed - TIE).sum(axis=0)
    n_down = (chance.min(axis=1)[:, None] <= observed + TIE).sum(axis=0)
    p: NDArray[np.float64] = 2 * (1 + np.minimum(n_up, n_down)) / (1 + REPEATS)
    return np.minimum(p, 1.0).reshape(shape)


def number(value: Any) -> float | None:  # noqa: ANN401  # any scalar
    """A plain number; None for NaN, which a row may not hold."""
    plain = float(value)
    return None if math.isnan(plain) else plain


def head_rows(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row per head of tables (layers, heads), or per layer (head null) of tables (layers,).

    ``columns`` are tables by name, the first of them a table; other values are in every row.
    """
    shape = np.shape(next(iter(columns.values())))
    rows = []
    for place in np.ndindex(shape):
        row: dict[str, Any] = {"layer": place[0], "head": place[1] if len(place) > 1 else None}
        for name, values in columns.items():
            row[name] = number(values[place]) if isinstance(values, np.ndarray) else values
        rows.append(row)
    return rows


def name_of(row: TidyRow) -> str:
    """A head's name: 3.7."""
    return f"{row['layer']}.{row['head']}"


def heads_named(rows: TidyRows, n_heads: int) -> str:
    """Heads in words, as the start of a sentence: Head 0.1; Heads 1.1 and 0.1; 7 of 72 heads."""
    if len(rows) > MOST_NAMED:
        return f"{len(rows)} of {n_heads} heads"
    return f"Head{'' if len(rows) == 1 else 's'} {listed([name_of(row) for row in rows])}"


def head_map(
    title: str,
    rows: TidyRows,
    column: str,
    *,
    value_label: str,
    marked: Callable[[TidyRow], bool] = lambda row: False,
    mark_label: str = "significant",
    diverging: bool = False,
    percent: bool = False,
    says: str = "",
    note: Callable[[TidyRow], str] | None = None,
) -> HeatMap:
    """Layer by head, one row of ``rows`` for each; ``note`` says more of a head than its value."""
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
        mark_label=mark_label,
        diverging=diverging,
        percent=percent,
        says=says,
        notes=tuple(tuple("" if row is None else note(row) for row in line) for line in cells)
        if note is not None
        else (),
    )


def token_map(
    title: str,
    tokens: Sequence[str],
    weights: Sequence[Sequence[float]],
    *,
    marked: Sequence[tuple[int, int]] = (),
    mark_label: str = "",
) -> HeatMap:
    """Who attends (rows) to whom (columns); the tokens are in the rows' labels and in the notes."""
    return HeatMap(
        title=title,
        row_label="from",
        column_label="to",
        rows=tuple(f"{i} {token}" for i, token in enumerate(tokens)),
        columns=tuple(map(str, range(len(tokens)))),
        values=tuple(map(tuple, weights)),
        value_label="attention",
        marked=tuple(marked),
        mark_label=mark_label,
        notes=(tuple(tokens),) * len(tokens),
    )
