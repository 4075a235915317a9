"""An interval as a value, and Wilson's interval for a share of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microtome.errors import RequestError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Interval:
    """A score (or a difference) with the ends of its interval and the number of rows."""

    value: float
    low: float
    high: float
    n: int

    def __contains__(self, truth: float) -> bool:
        return self.low <= truth <= self.high


def z_of(level: float) -> float:
    """The two-sided normal quantile: 1.96 for 0.95."""
    if not 0 < level < 1:
        raise RequestError(f"level must be between 0 and 1, got {level}", "use 0.95")
    return NormalDist().inv_cdf(0.5 + level / 2)


def as_rows(scores: ArrayLike, *, name: str = "scores") -> FloatArray:
    """One finite number per row; none at all is an error."""
    rows = np.asarray(scores, dtype=np.float64)
    if rows.ndim != 1:
        raise RequestError(f"expected one number per row, got {name} of shape {rows.shape}")
    if rows.size == 0:
        raise RequestError(f"expected at least 1 row of {name}, got none")
    if not np.isfinite(rows).all():
        n_bad = int((~np.isfinite(rows)).sum())
        raise RequestError(f"expected finite {name}, got {n_bad} of {rows.size} that aren't")
    return rows


def wilson(n_right: int, n: int, *, level: float = 0.95) -> Interval:
    """Wilson's score interval for ``n_right`` of ``n`` independent rows: ``wilson(9, 10).low``."""
    if n < 1 or not 0 <= n_right <= n:
        raise RequestError(f"expected 0 to n right rows of at least 1, got {n_right} of {n}")
    z = z_of(level)
    share = n_right / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At 0 and n one end is the score itself; rounding must not put the score outside.
    low = 0.0 if n_right == 0 else min(centre - reach, share)
    high = 1.0 if n_right == n else max(centre + reach, share)
    return Interval(share, low, high, n)
