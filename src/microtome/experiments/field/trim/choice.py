"""Which cut is recommended by a wish, and what comes nearest: chosen on rows that score nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass

from microtome.experiments.kit import learning
from microtome.views import TidyRow, TidyRows

LOSE = 0.01


@dataclass(frozen=True)
class Wish:
    """What a cut may lose (0.01 is a point) and how fast it must be; None: as fast as can be."""

    lose: float | None = LOSE
    speed: float | None = None


def judged(rows: TidyRows) -> list[TidyRow]:
    """Base and cuts on the rows that nothing was picked on."""
    return [row for row in rows if row["stage"] == "judged"]


def base_of(rows: TidyRows) -> TidyRow:
    """The whole model."""
    return next(row for row in judged(rows) if not row["edit"])


def cuts_of(rows: TidyRows) -> list[TidyRow]:
    """The cuts, the most layers first; of a size, the healed one first."""
    cuts = (row for row in judged(rows) if row["edit"])
    return sorted(cuts, key=lambda row: (-row["layers"], not row["healed"]))


def recommended(rows: TidyRows, wish: Wish) -> TidyRow | None:
    """The cut to take, chosen on the rows that its scores aren't from.

    The fastest that is sure to lose less than it may; where a speed is asked for, the best of those
    that are that fast.
    """
    if not has_learnt(rows):
        return None
    fit = [row for row in shallower(rows) if _fits(row, wish)]
    if wish.speed is not None:
        return max(fit, key=lambda row: row["pick_value"], default=None)
    return min(fit, key=lambda row: (row["layers"], -row["pick_value"]), default=None)


def has_learnt(rows: TidyRows) -> bool:
    """Whether the whole model is better than one constant answer, on the rows that pick."""
    return learning.has_learnt([where_picked(base_of(rows))])


def where_picked(row: TidyRow) -> TidyRow:
    """The row with its score on the rows that pick.

    Nothing may depend on the others: a base that is lucky there would make every cut look worse.
    """
    return {**row, "value": row["pick_value"]}


def _fits(row: TidyRow, wish: Wish) -> bool:
    return is_fast(row, wish) and (wish.lose is None or row["pick_low"] > -wish.lose)


def is_fast(row: TidyRow, wish: Wish) -> bool:
    """Whether a cut is as fast as was asked for; one that couldn't be timed isn't."""
    return wish.speed is None or (row["speed"] is not None and row["speed"] >= wish.speed)


def shallower(rows: TidyRows) -> list[TidyRow]:
    """The cuts with fewer layers than the base that give more than one answer."""
    n_layers = base_of(rows)["layers"]
    return [row for row in cuts_of(rows) if row["layers"] < n_layers and not row["one_answer"]]


def nearest(rows: TidyRows, wish: Wish) -> TidyRow | None:
    """What the smallest acceptable loss would get; the fastest, where none is fast enough."""
    lose = acceptable(rows, wish)
    if lose is not None:
        return recommended(rows, Wish(lose, wish.speed))
    return max(shallower(rows), key=lambda row: row["speed"] or 0, default=None)


def acceptable(rows: TidyRows, wish: Wish) -> float | None:
    """The smallest loss, in tenths of a point, that would be enough; None where none is fast."""
    fast = [cut["pick_low"] for cut in shallower(rows) if is_fast(cut, wish)]
    # Rounded up: what is named has to be enough.
    return math.floor(1 - 1000 * max(fast) + 1e-9) / 1000 if fast else None
