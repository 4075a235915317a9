"""How far a curve is from the straight line between its ends: a number, with an interval.

The x-axis is scaled to 0–1, so an area is a mean distance in units of the score. The absolute area
counts every distance; it can't be below 0, and noise only adds to it. The signed one counts what
is above the chord as positive: it says concave or convex, and noise cancels out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microtome.statistics.intervals import Interval
from microtome.statistics.ranks import OfScores
from microtome.statistics.resampling import bootstrap
from microtome.statistics.weighted import Metric

Floats = NDArray[np.float64]
FEWEST_POINTS = 3  # two points are their own chord


def signed_area(x: ArrayLike, y: ArrayLike) -> Floats:
    """The area above the chord minus the area below it: x (k,), y (..., k) → (...).

    signed_area([0, 1, 2], [0.0, 1.0, 0.0])   →   0.5
    """
    place, distance = _from_chord(x, y)
    middles = (distance[..., 1:] + distance[..., :-1]) / 2
    return np.asarray((middles * np.diff(place)).sum(-1))


def absolute_area(x: ArrayLike, y: ArrayLike) -> Floats:
    """The area between curve and chord, on either side: x (k,), y (..., k) → (...)."""
    place, distance = _from_chord(x, y)
    left, right = distance[..., :-1], distance[..., 1:]
    sizes = np.abs(left) + np.abs(right)
    # Where the curve crosses the chord, two triangles: (l² + r²) / (|l| + |r|) is twice their mean.
    crossed = (left**2 + right**2) / np.where(sizes > 0, sizes, 1.0)
    heights = np.where(left * right < 0, crossed, sizes) / 2
    return np.asarray((heights * np.diff(place)).sum(-1))


def _from_chord(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Places scaled to 0–1, and the curve's height above the chord at each."""
    along, values = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    place = (along - along[0]) / (along[-1] - along[0])
    chord = values[..., :1] + (values[..., -1:] - values[..., :1]) * place
    return place, values - chord


def areas(
    x: Sequence[float], metrics: Sequence[Metric], *, clusters: ArrayLike | None = None
) -> tuple[Interval, Interval]:
    """Absolute and signed area of a curve of scores, with intervals over the measured rows.

    ``metrics[i]`` scores the point at ``x[i]``; all of them score the same rows. The models are
    fixed: the intervals say nothing about other trainings.
    """

    def of(area: Callable[[ArrayLike, ArrayLike], Floats]) -> Interval:
        curves = OfScores(metrics, lambda scores: area(x, np.ascontiguousarray(scores.T)))
        return bootstrap(curves, clusters=clusters)

    return of(absolute_area), of(signed_area)
