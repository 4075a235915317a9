"""Claims about re-initialised layers, answered from rows: holds, doesn't hold, can't tell.

Every answer carries its numbers. A claim about one task is judged on that task alone; on another
one the same numbers are given, without a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from microtome.experiments.kit.answer import (
    above,
    all_of,
    answer,
    is_about,
    judged,
    unlearnt,
    verdict,
)
from microtome.experiments.kit.learning import has_learnt, not_learnt
from microtome.experiments.kit.seed_curves import (
    by_place,
    curves_by_seed,
    difference,
    mean_of,
    said,
    size_name,
    sizes,
)
from microtome.experiments.kit.wording import points
from microtome.experiments.singh.reinitialization.report import concavities, last_layers, scores
from microtome.papers.answer import Answer
from microtome.statistics import over_seeds
from microtome.views import TidyRow, TidyRows

HARDLY = 0.01  # "hardly matter": less than a point
ABOUT_FIVE = (0.03, 0.07)  # "about 5 points"
FLAT = 0.1  # "about linear": less than a tenth of the drop away from the chord
MUCH_MORE = 9.5  # ten times the data, where a share was rounded to rows
FALLS = 0.02  # a curve that falls less has no steepest step
PAPERS_LAYERS = 12
FIRST_LAYERS = 5  # QNLI fell when one of the first three, four or five layers went
SST2 = ("sst2", "sst2-sentence")

SeedCurve = Mapping[int, list[TidyRow]]  # re-initialised layers → a row per seed


def claims(rows: TidyRows) -> dict[str, Answer]:
    """What re-initialised layers cost, in the paper's terms."""
    if rows[0]["side"] != "top":
        return {}
    curves = {size: by_place(scores(rows, size), "reinitialized") for size in sizes(rows)}
    reasons = [
        why
        for size, curve in curves.items()
        if (why := not_learnt(curve[min(curve)], f"With {size_name(size)} the model"))
    ]
    if len(reasons) == len(curves):
        about = {
            "last layers": True,
            "little data": is_about(rows, SST2),
            "middle layers": is_about(rows, SST2),
            "qnli": is_about(rows, ("qnli",)),
            "cola": is_about(rows, ("cola",)),
        }
        return {key: unlearnt(reasons[0]) for key, is_asked in about.items() if is_asked}
    curves = {size: curve for size, curve in curves.items() if has_learnt(curve[min(curve)])}
    return {
        **_last_layers(rows, curves),
        **_middle_layers(rows, curves),
        **_little_data(rows, curves),
        **_steepest(rows, curves),
        **_straight(rows, curves),
    }


def _last_layers(rows: TidyRows, curves: Mapping[float, SeedCurve]) -> dict[str, Answer]:
    """The top layers, at the largest training size: sure to cost less than a point, or more."""
    curve = next(iter(curves.values()))
    few = last_layers(curve, rows[0]["layers"])
    if few is None or 0 not in curve:
        return {}
    cost = difference(curve[few], curve[0])
    words = f"the top {few} change the score by {said(cost)}"
    return {"last layers": answer(above(cost, -HARDLY), words, cost)}


def _middle_layers(rows: TidyRows, curves: Mapping[float, SeedCurve]) -> dict[str, Answer]:
    """The middle third, at the smallest training size that teaches a model without the top third.

    Holds where the interval of the cost is within 3 to 7 points, doesn't hold where it is outside.
    """
    n_layers = rows[0]["layers"]
    top, middle = round(n_layers / 3), round(2 * n_layers / 3)
    if top == middle or not all({top, middle} <= curve.keys() for curve in curves.values()):
        return {}
    taught = [(size, curve) for size, curve in curves.items() if has_learnt(curve[top])]
    if not taught:
        why = not_learnt(curves[next(iter(curves))][top], f"With {top} re-initialised layers it")
        return {"middle layers": judged(unlearnt(why), rows, SST2)}
    size, curve = taught[-1]
    cost = difference(curve[middle], curve[top])
    holds = None
    if cost.interval is not None:
        least, most = -cost.interval.high, -cost.interval.low
        if ABOUT_FIVE[0] <= least and most <= ABOUT_FIVE[1]:
            holds = True
        elif most < ABOUT_FIVE[0] or least > ABOUT_FIVE[1]:
            holds = False
    numbers = f"with {size_name(size)}, from {top} to {middle} re-initialised layers {said(cost)}"
    return {"middle layers": judged(answer(holds, numbers, cost), rows, SST2)}


def _little_data(rows: TidyRows, curves: Mapping[float, SeedCurve]) -> dict[str, Answer]:
    """Every layer pre-trained on little data, against none on ten times as much or more.

    Holds where it is sure to be better than all of them, doesn't hold where one is better.
    """
    n_train = {row["fraction"]: row["n_train"] for row in rows}
    n_layers, small = rows[0]["layers"], list(curves)[-1]
    larger = [size for size in curves if n_train[size] >= MUCH_MORE * n_train[small]]
    gains = {
        size: difference(curves[small][0], curves[size][n_layers])
        for size in larger
        if 0 in curves[small] and n_layers in curves[size]
    }
    if not gains:
        return {}
    holds = all_of([above(gain, 0.0) for gain in gains.values()])
    least = min(gains.values(), key=lambda gain: gain.value)
    against = "; ".join(f"against {size_name(size)}: {said(gain)}" for size, gain in gains.items())
    numbers = f"pre-trained on {size_name(small)}, {against}"
    return {"little data": judged(answer(holds, numbers, least), rows, SST2)}


def _steepest(rows: TidyRows, curves: Mapping[float, SeedCurve]) -> dict[str, Answer]:
    """Where each curve falls most in one step; among the first layers is what QNLI did.

    Of twelve layers, and of curves that are sure to fall: holds where that is so for every size and
    seed, doesn't hold where it is so for no seed of one size.
    """
    n_layers = rows[0]["layers"]
    texts: list[str] = []
    votes: list[bool | None] = []
    for size, curve in curves.items():
        steps = list(pairwise(curve))
        if not steps or any(high - low > 1 for low, high in steps):
            continue
        low, high = min(steps, key=lambda s: mean_of(curve[s[1]]) - mean_of(curve[s[0]]))
        votes.append(_is_early(curve, n_layers))
        fall = points(mean_of(curve[high]) - mean_of(curve[low]))
        texts.append(f"{size_name(size)}: most when layer {n_layers - high} goes ({fall} points)")
    if not texts:
        return {}
    holds = all_of(votes) if n_layers == PAPERS_LAYERS else None
    return {"qnli": judged(answer(holds, "; ".join(texts)), rows, ("qnli",))}


def _is_early(curve: SeedCurve, n_layers: int) -> bool | None:
    """Whether the steepest step is among the first layers, in all seeds; None: can't be told."""
    whole = difference(curve[max(curve)], curve[min(curve)])
    if above(whole, -FALLS) is not False:
        return None
    found = set()
    for one in curves_by_seed(curve):
        _, place = min((one[high] - one[low], high) for low, high in pairwise(one))
        found.add(n_layers - place < FIRST_LAYERS)
    return found.pop() if len(found) == 1 else None


def _straight(rows: TidyRows, curves: Mapping[float, SeedCurve]) -> dict[str, Answer]:
    """Whether the curve of the largest size is a straight line.

    Holds where the interval of its mean distance from the chord is within a tenth of the whole
    drop; doesn't hold where it is on one side of the chord, and further away than that.
    """
    size, curve = next(iter(curves.items()))
    areas = [row["signed"] for row in concavities(rows, size)]
    if not areas:
        return {}
    drop = mean_of(curve[min(curve)]) - mean_of(curve[max(curve)])
    most, mean = FLAT * abs(drop), over_seeds(areas)
    holds = None
    if mean.interval is not None:
        low, high = mean.interval.low, mean.interval.high
        if max(abs(low), abs(high)) < most:
            holds = True
        elif not low <= 0 <= high and abs(mean.value) > most:
            holds = False
    numbers = f"{points(mean.value)} points from the chord on average, of a drop of {points(drop)}"
    ends = (None, None) if mean.interval is None else (mean.interval.low, mean.interval.high)
    found = Answer(numbers, verdict(holds), mean.value, *ends)
    return {"cola": judged(found, rows, ("cola",))}
