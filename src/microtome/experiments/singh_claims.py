"""The claims of Singh & Giovanardi (2020), answered from rows: holds, doesn't hold, can't tell.

Every answer carries its numbers. A claim about one task is judged on that task alone; on another
one the same numbers are given, without a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from microtome.experiments.experiment import Row, Rows, percent, points
from microtome.experiments.probing_words import beside, probed, recipes
from microtome.experiments.seed_curves import by_place, difference, mean_of, said
from microtome.experiments.training_sizes import size_name, sizes
from microtome.experiments.verdicts import above, judged, verdict

if TYPE_CHECKING:
    pass

ENOUGH_SEEDS = 3
HARDLY = 0.01  # "hardly matter": less than a point
ABOUT = (0.03, 0.07)  # "about 5 points"
SST = ("sst2", "sst2-sentence")
FALLS = 0.02  # a curve that falls less has no shape to tell of
FLAT = 0.1  # "about linear": less than a tenth of the drop away from the chord


def enough_seeds(rows: Rows) -> bool:
    """Whether there are as many seeds as a verdict on trained models needs."""
    return len({row["seed"] for row in rows}) >= ENOUGH_SEEDS


def reinitialization(rows: Rows) -> dict[str, str]:
    """What re-initialised layers cost."""
    from microtome.experiments.reinitialization import near_end, scores

    if rows[0]["side"] != "top":
        return {}
    n_layers = rows[0]["layers"]
    curves = {size: by_place(scores(rows, size), "reinitialized") for size in sizes(rows)}
    largest, smallest = next(iter(curves)), list(curves)[-1]
    answers: dict[str, str] = {}
    curve = curves[largest]
    few = near_end(curve, n_layers)
    if few is not None and 0 in curve:
        found = difference(curve[few], curve[0])
        answers["last layers"] = (
            f"{verdict(above(found, -HARDLY))}: the top {few} change the score by {said(found)}"
        )
    answers |= _middle(rows, curves[smallest], smallest, n_layers)
    answers |= _little_data(rows, curves, n_layers)
    answers |= _steepest(rows, curves, n_layers)
    answers |= _straight(rows, curves)
    return answers


def _middle(
    rows: Rows, curve: Mapping[int, list[Row]], size: float, n_layers: int
) -> dict[str, str]:
    """The middle third, at the smallest training size."""
    top, middle = round(n_layers / 3), round(2 * n_layers / 3)
    if not {top, middle} <= curve.keys() or top == middle:
        return {}
    found = difference(curve[middle], curve[top])
    holds = None
    if found.interval is not None:
        least, most = -found.interval.high, -found.interval.low
        if ABOUT[0] <= least and most <= ABOUT[1]:
            holds = True
        elif most < ABOUT[0] or least > ABOUT[1]:
            holds = False
    numbers = f"with {size_name(size)}, from {top} to {middle} re-initialised layers {said(found)}"
    return {"middle layers": judged(holds, numbers, rows, SST)}


def _little_data(
    rows: Rows, curves: Mapping[float, Mapping[int, list[Row]]], n_layers: int
) -> dict[str, str]:
    """Every layer pre-trained on little data, against none on ten times as much or more."""
    n_train = {row["fraction"]: row["n_train"] for row in rows}
    small = list(curves)[-1]
    larger = [size for size in curves if n_train[size] >= 9.5 * n_train[small]]
    pairs = [
        (size, difference(curves[small][0], curves[size][n_layers]))
        for size in larger
        if 0 in curves[small] and n_layers in curves[size]
    ]
    if not pairs:
        return {}
    votes = [above(found, 0.0) for _, found in pairs]
    holds = None if None in votes else all(votes)
    against = "; ".join(f"against {size_name(size)}: {said(found)}" for size, found in pairs)
    numbers = f"pre-trained on {size_name(small)}, {against}"
    return {"little data": judged(holds, numbers, rows, SST)}


def _steepest(
    rows: Rows, curves: Mapping[float, Mapping[int, list[Row]]], n_layers: int
) -> dict[str, str]:
    """Where each curve falls most in one step; among the first five layers is what QNLI did."""
    texts, early = [], []
    for size, curve in curves.items():
        steps = list(pairwise(curve))
        if not steps or any(high - low > 1 for low, high in steps):
            continue
        low, high = min(steps, key=lambda s: mean_of(curve[s[1]]) - mean_of(curve[s[0]]))
        early.append(n_layers - high < 5)
        fall = points(mean_of(curve[high]) - mean_of(curve[low]))
        texts.append(f"{size_name(size)}: most when layer {n_layers - high} goes ({fall} points)")
    if not texts:
        return {}
    holds = all(early) if enough_seeds(rows) else None
    return {"qnli": judged(holds, "; ".join(texts), rows, ("qnli",))}


def _straight(rows: Rows, curves: Mapping[float, Mapping[int, list[Row]]]) -> dict[str, str]:
    """Whether the curve of the largest size is a straight line."""
    from microtome.experiments.curve_shapes import shapes
    from microtome.statistics import over_seeds

    size = next(iter(curves))
    found = shapes(rows, size)
    if not found:
        return {}
    curve = curves[size]
    drop = mean_of(curve[min(curve)]) - mean_of(curve[max(curve)])
    mean = over_seeds([row["signed"] for row in found])
    numbers = f"{points(mean.value)} points from the chord on average, of a drop of {points(drop)}"
    holds = None
    if mean.interval is not None:
        reach = max(abs(mean.interval.low), abs(mean.interval.high))
        if reach < FLAT * abs(drop):
            holds = True
        elif not mean.interval.low <= 0 <= mean.interval.high and abs(mean.value) > FLAT * abs(
            drop
        ):
            holds = False
    return {"cola": judged(holds, numbers, rows, ("cola",))}


def frozen_probing(rows: Rows) -> dict[str, str]:
    """What frozen layers know, as the paper's own recipe sees it where it was run."""
    recipe = recipes(rows)[0]
    curves = {size: by_place(probed(rows, recipe, size), "removed") for size in sizes(rows)}
    largest, *smaller = [size for size, curve in curves.items() if curve]
    shared = next((size for size in (largest, *smaller) if beside(rows, size)), largest)
    curve = curves[largest]
    answers = {
        "decline": judged(*_decline(curve, rows[0].get("task")), rows, (*SST, "qnli")),
        "peak": _peak(curves[shared], by_place(beside(rows, shared), "removed")),
    }
    if 2 in curve:
        answers["top layers"] = judged(*_top_layers(curve[2]), rows, (*SST, "qnli"))
    if rows[0].get("task") == "cola":
        zero = [k for k, own in curve.items() if abs(mean_of(own)) < 0.005]
        numbers = f"0 at {len(zero)} of {len(curve)} points ({recipe} recipe)"
        answers["cola"] = f"{verdict(len(curve) - len(zero) <= 2)}: {numbers}"
    return answers


def _top_layers(own: Sequence[Row]) -> tuple[bool | None, str]:
    """Without the top two layers against all: paired on the same rows, run by run."""
    ends = [(row["delta_low"], row["delta_high"]) for row in own]
    mean = sum(row["delta"] for row in own) / len(own)
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    holds = True if low > 0 else False if high <= 0 else None
    return holds, f"without the top two {points(mean)} points ({points(low)} to {points(high)})"


def _decline(curve: Mapping[int, list[Row]], task: str | None) -> tuple[bool | None, str]:
    """Steep: half of the whole fall in one step; QNLI's is at the sixth of twelve layers."""
    steps = list(pairwise(curve))
    if not steps:
        return None, "one depth only"
    low, high = min(steps, key=lambda s: mean_of(curve[s[1]]) - mean_of(curve[s[0]]))
    fall = mean_of(curve[high]) - mean_of(curve[low])
    whole = mean_of(curve[max(curve)]) - mean_of(curve[min(curve)])
    steep, holds = fall <= whole / 2, None
    if whole < -FALLS and max(curve) == 12:
        holds = steep and high == 6 if task == "qnli" else not steep
    return holds, (
        f"{points(whole)} points from {min(curve)} to {max(curve)} removed; the steepest step is"
        f" from {low} to {high}: {points(fall)}"
    )


def _peak(curve: Mapping[int, list[Row]], other: Mapping[int, list[Row]]) -> str:
    best = max(curve, key=lambda k: mean_of(curve[k]))
    numbers = f"{percent(mean_of(curve[best]))} with {best} removed"
    if not other:
        return (
            f"can't tell: {numbers}; give --beside RUN, a reinitialization of this model and task"
        )
    rival = max(other, key=lambda k: mean_of(other[k]))
    lowest = min(row["low"] for row in other[rival])
    highest = max(row["high"] for row in curve[best])
    reached = mean_of(other[rival])
    holds = True if highest < lowest else None
    if reached < mean_of(curve[best]) and max(r["high"] for r in other[rival]) < min(
        r["low"] for r in curve[best]
    ):
        holds = False
    return f"{verdict(holds)}: {numbers}, re-initialised {percent(reached)} with {rival}"


def weight_drift(rows: Rows) -> dict[str, str]:
    """How far weights went."""
    from microtome.experiments.weight_drift import drift, rank_correlation, steepness

    sized = sizes(rows)
    curve = drift(rows, sized[0] if sized else None)
    if len(curve) < 3:
        return {"depth": "can't tell: the layers share their weights, or are fewer than three"}
    rho, slope = rank_correlation(curve), steepness(curve)
    holds = True if rho >= 0.5 and slope > 0 else False if rho <= 0 else None
    numbers = f"rank correlation of layer and distance {rho:+.2f}".replace("-", "−")
    answers = {"depth": f"{verdict(holds)}: {numbers}"}
    if rows[0].get("task") == "cola":
        answers["cola"] = f"can't tell from one task: {numbers}"
    if len(sized) > 1:
        answers["data"] = _with_data(rows, sized)
    return answers


def _with_data(rows: Rows, sized: Sequence[float]) -> str:
    """Whether the curve shifts up and gets steeper with every larger size, seed by seed."""
    by_seed = {row["seed"]: [r for r in rows if r["seed"] == row["seed"]] for row in rows}
    votes = [
        all(more > less for values in _levels(own, sized) for more, less in pairwise(values))
        for own in by_seed.values()
    ]
    holds = None if any(votes) != all(votes) or not enough_seeds(rows) else all(votes)
    numbers = "; ".join(
        f"{size_name(size)}: mean {mean:.3g}, steepness {slope:.3g}"
        for size, mean, slope in zip(sized, *_levels(rows, sized), strict=True)
    )
    matched = any(row.get("match_steps") for row in rows)
    remark = "as many updates each" if matched else "more data were also more updates"
    return f"{verdict(holds)}: so in {sum(votes)} of {len(votes)} seeds; {numbers} ({remark})"


def _levels(rows: Rows, sized: Sequence[float]) -> tuple[list[float], list[float]]:
    """The mean distance and its slope over layers, at every size."""
    from microtome.experiments.weight_drift import drift, steepness

    curves = [drift(rows, size) for size in sized]
    return [sum(c.values()) / len(c) for c in curves], [steepness(c) for c in curves]
