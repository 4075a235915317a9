"""Claims about frozen layers, answered from rows: holds, doesn't hold, can't tell.

Every answer carries its numbers. A claim about one task is judged on that task alone; on another
one the same numbers are given, without a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from microtome.experiments.kit.answer import (
    above,
    enough_seeds,
    is_about,
    judged,
    unlearnt,
    verdict,
)
from microtome.experiments.kit.learning import constant_of, has_learnt, no_better, not_learnt
from microtome.experiments.kit.seed_curves import (
    by_place,
    curves_by_seed,
    difference,
    mean_of,
    sizes,
)
from microtome.experiments.kit.wording import change, percent, points
from microtome.experiments.singh.frozen_probing.report import probed, recipes, reinitialized
from microtome.papers.answer import CANT_TELL, Answer
from microtome.views import TidyRow, TidyRows

FALLS = 0.02  # a curve that falls less has no shape to tell of
ZERO = 0.005  # a correlation that prints as 0.00
PAPERS_LAYERS = 12  # "at the sixth layer" is about BERT-base
PAPERS_POINTS = 11  # of CoLA's curve: 1 to 11 layers removed
STEEP_AT = 6
TASKS = ("sst2", "sst2-sentence", "qnli")

SeedCurve = Mapping[int, list[TidyRow]]  # removed layers → a row per seed


def claims(rows: TidyRows) -> dict[str, Answer]:
    """What frozen layers know, as the paper's own recipe sees it where it was run."""
    recipe = recipes(rows)[0]
    curves = {size: by_place(probed(rows, recipe, size), "removed") for size in sizes(rows)}
    probed_sizes = [size for size, curve in curves.items() if curve]
    curve = curves[probed_sizes[0]]
    # Peaks are compared at a size that both experiments have, where there is one.
    shared = next((size for size in probed_sizes if reinitialized(rows, size)), probed_sizes[0])
    answers = {
        "decline": judged(_decline(curve, is_about(rows, ("qnli",))), rows, TASKS),
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

    Of as many points as the paper's, and three seeds; fewer decide nothing. An embedded task in
    CoLA's place shows its accuracy, and has no verdict.
    """
    is_matthews = curve[min(curve)][0]["metric"] == "matthews"
    n_zero = sum(
        abs(mean_of(at_place)) < ZERO if is_matthews else not has_learnt(at_place)
        for at_place in curve.values()
    )
    what = "0" if is_matthews else "no better than one constant answer"
    words = f"{what} at {n_zero} of {len(curve)} points ({recipe} recipe)"
    enough = len(curve) >= PAPERS_POINTS and all(map(enough_seeds, curve.values()))
    holds = len(curve) - n_zero <= 2 if enough else None
    found = Answer(words, verdict(holds) if is_matthews else None, n_zero / len(curve), unit="%")
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


def _decline(curve: SeedCurve, of_qnli: bool) -> Answer:
    """Steep: half of the whole fall in one step; QNLI's is at the sixth of twelve layers.

    A curve that isn't sure to fall by more than 2 points, or that isn't of all twelve layers, or
    whose seeds disagree, decides nothing.
    """
    steps = list(pairwise(curve))
    if not steps:
        return Answer("one depth only", CANT_TELL)
    low, high = min(steps, key=lambda s: mean_of(curve[s[1]]) - mean_of(curve[s[0]]))
    fall = mean_of(curve[high]) - mean_of(curve[low])
    whole = mean_of(curve[max(curve)]) - mean_of(curve[min(curve)])
    holds = None
    if list(curve) == list(range(PAPERS_LAYERS + 1)) and _falls(curve):
        votes = {_is_as_in_the_paper(one, of_qnli) for one in curves_by_seed(curve)}
        holds = votes.pop() if len(votes) == 1 else None
    words = (
        f"{points(whole)} points from {min(curve)} to {max(curve)} removed; the steepest step is"
        f" from {low} to {high}: {points(fall)}"
    )
    return Answer(words, verdict(holds), fall)


def _falls(curve: SeedCurve) -> bool:
    """Whether the whole fall is sure to be more than 2 points; over seeds, three at least."""
    whole = difference(curve[max(curve)], curve[min(curve)])
    return above(whole, -FALLS) is False


def _is_as_in_the_paper(one: Mapping[int, float], of_qnli: bool) -> bool:
    """Whether one seed's curve falls in one steep step at the sixth layer (QNLI), or in none."""
    fall, place = min((one[high] - one[low], high) for low, high in pairwise(one))
    steep = fall <= (one[max(one)] - one[min(one)]) / 2
    return steep and place == STEEP_AT if of_qnli else not steep


def _peak(frozen: SeedCurve, tuned: SeedCurve) -> Answer:
    """The highest score of frozen layers against that of re-initialised, fine-tuned ones.

    Holds where the runs' intervals are all below the others', doesn't hold where all are above;
    decides nothing where either are no better than one constant answer, or of fewer than three
    seeds.
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
    for runs in (frozen[best], rivals):
        if not has_learnt(runs):
            return unlearnt(f"{words}{no_better(runs)}")
    (frozen_low, frozen_high), (tuned_low, tuned_high) = (
        (min(row["low"] for row in peak), max(row["high"] for row in peak))
        for peak in (frozen[best], tuned[rival])
    )
    holds = True if frozen_high < tuned_low else False if tuned_high < frozen_low else None
    if not (enough_seeds(frozen[best]) and enough_seeds(tuned[rival])):
        holds = None
    gap = mean_of(frozen[best]) - mean_of(tuned[rival])
    ends = (frozen_low - tuned_high, frozen_high - tuned_low)
    return Answer(words, verdict(holds), gap, *ends)
