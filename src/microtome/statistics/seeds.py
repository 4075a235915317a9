"""Trained models are compared over seeds: an edit must exceed the spread between seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from microtome.errors import RequestError
from microtome.statistics.intervals import FloatArray, Interval, as_rows, z_of

INSEPARABLE = "can't separate the edit from the seed"
ENOUGH_SEEDS = 3  # below, Student's t has one degree of freedom: an interval that says nothing


@dataclass(frozen=True)
class SeedScore:
    """The mean over seeds; no interval from fewer than three of them, and then the reason."""

    value: float
    n_seeds: int
    interval: Interval | None
    remark: str


@dataclass(frozen=True)
class SeedDifference:
    """``edited - base`` over seeds; a test on them finds a true ``detectable`` 8 times in 10."""

    value: float
    n_edited: int
    n_base: int
    interval: Interval | None
    p: float | None
    detectable: float | None
    remark: str


def over_seeds(scores: ArrayLike, *, level: float = 0.95) -> SeedScore:
    """The mean of one score per seed, with Student's t-interval from three seeds on."""
    rows = as_rows(scores, name="seeds")
    value, n = float(rows.mean()), len(rows)
    z_of(level)
    if n < ENOUGH_SEEDS:
        return SeedScore(value, n, None, INSEPARABLE)
    reach = _t(n - 1, level) * float(rows.std(ddof=1)) / math.sqrt(n)
    return SeedScore(value, n, Interval(value, value - reach, value + reach, n), "")


def compare_seeds(
    edited: ArrayLike,
    base: ArrayLike,
    *,
    level: float = 0.95,
    seed_spread: float | None = None,
) -> SeedDifference:
    """Welch's interval and test of two arms of seeds, with cautious degrees of freedom.

    ``compare_seeds([0.91, 0.92, 0.90], [0.90, 0.89, 0.91])`` has an interval; with fewer than three
    seeds in an arm it has a ``remark`` instead. ``seed_spread`` is a standard deviation known from
    elsewhere (``flip_spread`` gives a floor); without it that of the arms is used, where one of
    them has two seeds or more.
    """
    ours, theirs = as_rows(edited, name="seeds"), as_rows(base, name="seeds")
    value = float(ours.mean() - theirs.mean())
    spread = _pooled_spread(ours, theirs) if seed_spread is None else seed_spread
    detectable = (
        None
        if spread is None
        else detectable_difference(spread, len(ours), len(theirs), level=level)
    )
    n = len(ours) + len(theirs)
    if min(len(ours), len(theirs)) < ENOUGH_SEEDS:
        remark = detectable_sentence(len(ours), len(theirs), detectable)
        return SeedDifference(value, len(ours), len(theirs), None, None, detectable, remark)
    error, freedom = _welch(ours, theirs)
    reach = _t(freedom, level) * error
    p = _two_sided(value, error, freedom)
    interval = Interval(value, value - reach, value + reach, n)
    return SeedDifference(value, len(ours), len(theirs), interval, p, detectable, "")


def detectable_difference(
    spread: float, n_edited: int, n_base: int, *, power: float = 0.8, level: float = 0.95
) -> float:
    """The true difference that a t-test on so many seeds finds with this power.

    One seed in each arm leaves no degree of freedom: then the spread counts as known.
    """
    from scipy.optimize import brentq
    from scipy.stats import nct, norm

    if min(n_edited, n_base) < 1 or spread < 0:
        raise RequestError(
            "expected at least 1 seed on each side and a spread of at least 0,"
            f" got {n_edited}, {n_base} and {spread}"
        )
    error = spread * math.sqrt(1 / n_edited + 1 / n_base)
    freedom = n_edited + n_base - 2
    if freedom == 0:
        return float((z_of(level) + norm.ppf(power)) * error)
    critical = _t(freedom, level)

    def excess_power(shift: float) -> float:
        # The chance of a significant result on the wrong side is negligible at any useful power.
        return float(nct.sf(critical, freedom, shift)) - power

    return float(brentq(excess_power, 0.0, 2 * critical + 3)) * error


def detectable_sentence(n_edited: int, n_base: int, detectable: float | None) -> str:
    """Why the seeds don't decide, and the smallest difference that they could detect."""
    runs = f"{n_edited} and {n_base} runs" if max(n_edited, n_base) > 1 else "one run each"
    if detectable is None:
        in_spreads = detectable_difference(1.0, n_edited, n_base)
        return (
            f"{INSEPARABLE}: {runs}; smallest detectable difference: {in_spreads:.1f} times the"
            " (unknown) standard deviation between seeds"
        )
    return f"{INSEPARABLE}: {runs}; smallest detectable difference: {100 * detectable:.1f} points"


def flip_spread(right: ArrayLike, other_right: ArrayLike) -> float:
    """A floor for the spread between seeds, from two runs' right (1) and wrong (0) rows.

    If each row on which the runs disagree fell either way by chance, scores would have this
    standard deviation. Rows that flip together make the true spread larger.
    """
    rows, other = as_rows(right, name="answers"), as_rows(other_right, name="answers")
    if rows.shape != other.shape:
        raise RequestError(
            f"expected answers to the same rows, got {len(rows)} and {len(other)} of them"
        )
    return math.sqrt(float((rows != other).mean()) / (2 * len(rows)))


def _pooled_spread(ours: FloatArray, theirs: FloatArray) -> float | None:
    freedom = len(ours) + len(theirs) - 2
    if freedom == 0:
        return None
    squares = sum(float(((arm - arm.mean()) ** 2).sum()) for arm in (ours, theirs))
    return math.sqrt(squares / freedom)


def _welch(ours: FloatArray, theirs: FloatArray) -> tuple[float, float]:
    """Standard error of the difference, and its degrees of freedom.

    Welch's own degrees of freedom cover 93 % where three seeds spread more than ten (a small
    spread by chance also counts as many degrees); halfway to the smaller arm's they cover 94.
    """
    a, b = (float(arm.var(ddof=1)) / len(arm) for arm in (ours, theirs))
    fewest = min(len(ours), len(theirs)) - 1
    if a + b == 0:
        return 0.0, float(fewest)
    welch = (a + b) ** 2 / (a**2 / (len(ours) - 1) + b**2 / (len(theirs) - 1))
    return math.sqrt(a + b), (welch + fewest) / 2


def _t(freedom: float, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + level / 2))


def _two_sided(value: float, error: float, freedom: float) -> float:
    from scipy.special import stdtr

    if error == 0:
        return 1.0 if value == 0 else 0.0
    return float(2 * stdtr(freedom, -abs(value) / error))
