"""Claims about frozen layers, answered from rows: holds, doesn't hold, can't tell.

Every answer carries its numbers. A claim about one task is judged on that task alone; on another
one the same numbers are given, without a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from microtome.experiments.kit.answer import is_about, judged, unlearnt, verdict
from microtome.experiments.kit.learning import constant_of, has_learnt, no_better, not_learnt
from microtome.experiments.kit.seed_curves import by_place, mean_of, sizes
from microtome.experiments.kit.wording import change, percent, points
from microtome.experiments.singh.frozen_probing.report import probed, recipes, reinitialized
from microtome.papers.answer import CANT_TELL, Answer
from microtome.views import TidyRow, TidyRows

FALLS = 0.02  # a curve that falls less has no shape to tell of
ZERO = 0.005  # a correlation that prints as 0.00
PAPERS_LAYERS = 12  # "at the sixth layer" is about BERT-base
STEEP_AT = 6
TASKS = ("sst2", "sst2-sentence", "qnli")

SeedCurve = Mapping[int, list[TidyRow]]  # removed layers → a row per seed


def claims(rows: TidyRows) -> dict[str, Answer]:
    """What frozen layers know, as the paper's own recipe sees it where it was run."""
    recipe, task = recipes(rows)[0], rows[0].get("task")
    curves = {size: by_place(probed(rows, recipe, size), "removed") for size in sizes(rows)}
    probed_sizes = [size for size, curve in curves.items() if curve]
    curve = curves[probed_sizes[0]]
    # Peaks are compared at a size that both experiments have, where there is one.
    shared = next((size for size in probed_sizes if reinitialized(rows, size)), probed_sizes[0])
    answers = {
        "decline": judged(_decline(curve, task), rows, TASKS),
        "peak": _peak(curves[shared], by_place(reinitialized(rows, shared), "removed")),
    }
    if 2 in curve:
        answers["top layers"] = judged(_top_layers(curve[2]), rows, TASKS)
    if why := not_learnt(curve[min(curve)], "The classifier on the whole encoder"):
        answers |= dict.fromkeys(answers.keys() - {"peak"}, judged(unlearnt(why), rows, TASKS))
    if is_about(rows, ("cola",)):
        answers["cola"] = _zero_points(rows, curve, recipe)
    return answers


def _zero_points(rows: TidyRows, curve: SeedCurve, recipe: str) -> Answer:
    """Holds where the mean correlation prints as 0.00 at all but two points of the curve.

    An embedded task in CoLA's place shows its accuracy: there a point is 0 where the answers are
    no better than one constant answer.
    """
    is_matthews = curve[min(curve)][0]["metric"] == "matthews"
    n_zero = sum(
        abs(mean_of(at_place)) < ZERO if is_matthews else not has_learnt(at_place)
        for at_place in curve.values()
    )
    what = "0" if is_matthews else "no better than one constant answer"
    words = f"{what} at {n_zero} of {len(curve)} points ({recipe} recipe)"
    found = Answer(words, verdict(len(curve) - n_zero <= 2), n_zero / len(curve), unit="%")
    return judged(found, rows, ("cola",))


def _top_layers(without_two: Sequence[TidyRow]) -> Answer:
    """Without the top two layers against all: paired on the same rows, run by run.

    Holds where every run's interval is above 0, doesn't hold where every one is at or below 0.
    """
    mean = sum(row["delta"] for row in without_two) / len(without_two)
    low = min(row["delta_low"] for row in without_two)
    high = max(row["delta_high"] for row in without_two)
    holds = True if low > 0 else False if high <= 0 else None
    words = f"without the top two {change(mean, low, high)}"
    return Answer(words, verdict(holds), mean, low, high)


def _decline(curve: SeedCurve, task: str | None) -> Answer:
    """Steep: half of the whole fall in one step; QNLI's is at the sixth of twelve layers.

    A curve that falls by 2 points or less, or that isn't of all twelve layers, decides nothing.
    """
    steps = list(pairwise(curve))
    if not steps:
        return Answer("one depth only", CANT_TELL)
    low, high = min(steps, key=lambda s: mean_of(curve[s[1]]) - mean_of(curve[s[0]]))
    fall = mean_of(curve[high]) - mean_of(curve[low])
    whole = mean_of(curve[max(curve)]) - mean_of(curve[min(curve)])
    steep, holds = fall <= whole / 2, None
    if whole < -FALLS and max(curve) == PAPERS_LAYERS:
        holds = steep and high == STEEP_AT if task == "qnli" else not steep
    words = (
        f"{points(whole)} points from {min(curve)} to {max(curve)} removed; the steepest step is"
        f" from {low} to {high}: {points(fall)}"
    )
    return Answer(words, verdict(holds), fall)


def _peak(frozen: SeedCurve, tuned: SeedCurve) -> Answer:
    """The highest score of frozen layers against that of re-initialised, fine-tuned ones.

    Holds where the runs' intervals are all below the others', doesn't hold where all are above;
    decides nothing where those others are no better than one constant answer.
    """
    best = max(frozen, key=lambda removed: mean_of(frozen[removed]))
    numbers = f"{percent(mean_of(frozen[best]))} with {best} removed"
    if not tuned:
        words = f"{numbers}; give --beside RUN, a reinitialization of this model and task"
        return Answer(words, CANT_TELL)
    rival = max(tuned, key=lambda count: mean_of(tuned[count]))
    words = f"{numbers}, re-initialised {percent(mean_of(tuned[rival]))} with {rival}"
    # Only the probes' rows say what a constant answer scores: on the same rows.
    constant = {"constant_value": constant_of(frozen[best])}
    rivals = [{**row, **constant} for row in tuned[rival]]
    if not has_learnt(rivals):
        return unlearnt(f"{words}{no_better(rivals)}")
    (frozen_low, frozen_high), (tuned_low, tuned_high) = (
        (min(row["low"] for row in peak), max(row["high"] for row in peak))
        for peak in (frozen[best], tuned[rival])
    )
    holds = True if frozen_high < tuned_low else False if tuned_high < frozen_low else None
    gap = mean_of(frozen[best]) - mean_of(tuned[rival])
    ends = (frozen_low - tuned_high, frozen_high - tuned_low)
    return Answer(words, verdict(holds), gap, *ends)
