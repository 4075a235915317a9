"""The papers' claims about duplication, as these rows answer them.

What deeper models gain is judged with the depth picked on other rows and seeds. Where the unedited
model hasn't learnt the task, nothing is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from microtome.experiments.kao.duplication.depth_comparison import (
    OTHER_ROWS,
    DepthComparison,
    TrainedDepth,
    baseline_not_learnt,
    baseline_of,
    compare_depths,
    trained_depths,
)
from microtome.experiments.kao.duplication.report import (
    picked_finding,
    picked_row,
)
from microtome.experiments.kao.duplication.strategies import REPEAT
from microtome.experiments.kit.answer import (
    above,
    answer,
    from_row,
    is_about,
    judged,
    opposite,
    sure_above,
    unlearnt,
)
from microtome.experiments.kit.seed_curves import said
from microtome.experiments.kit.wording import counted
from microtome.papers.answer import CANT_TELL, Answer
from microtome.statistics import SeedDifference, compare_seeds
from microtome.views import TidyRows

HARDLY = 0.01  # "hardly any" gain: less than a point
NO_BENEFIT = 0.005  # "does not benefit": less than half a point, as no seeds can show that it's 0
GAINING, EASY = ("squad2", "snli"), ("sst2", "sst2-sentence")
SHARED = "albert"  # the models that the papers say need more than one layer


def claims(rows: TidyRows) -> dict[str, Answer]:
    """A claim's key → what was measured; a claim that these rows don't touch is left out."""
    depths = trained_depths(rows)
    baseline = baseline_of(depths)
    if baseline is None:
        return {}
    if why := baseline_not_learnt(rows):
        about = {"gain": GAINING, "easy task": EASY}
        found = {key: unlearnt(why) for key in _keys(rows, depths)}
        judged_on = {key: judged(found[key], rows, about[key]) for key in about if key in found}
        return found | judged_on
    return _gain(rows) | _how_many(rows, depths) | _rules(depths, baseline)


def _keys(rows: TidyRows, depths: Sequence[TrainedDepth]) -> list[str]:
    """The claims that these rows would answer, had the model learnt the task."""
    strategies = {depth.strategy for depth in depths}
    asked = {
        "gain": "first" in strategies,
        "how many": "first" in strategies,
        "easy task": "first" in strategies and is_about(rows, EASY),
        "rule 1": any(strategy.startswith(REPEAT) for strategy in strategies),
        "rule 2": "last" in strategies,
    }
    return [key for key, is_asked in asked.items() if is_asked]


def _gain(rows: TidyRows) -> dict[str, Answer]:
    """The best depth, picked on other rows and seeds: sure to be better, or sure to be worse.

    On SST-2 the claim is that there is hardly any gain: its interval is below one point.
    BERT-large's, that there is none: its interval is below 0; it is excepted from the first.
    """
    words, honest = picked_finding(rows, "first"), picked_row(rows, "first", OTHER_ROWS)
    if not words:
        return {}
    if honest is None:
        return {"gain": Answer(words, CANT_TELL)}
    columns, ends = ("value", "low", "high"), (honest["low"], honest["high"])
    found = from_row(sure_above(*ends, 0.0), words, honest, columns)
    is_excepted = "bert-large" in _model(rows) and SHARED not in _model(rows)
    gain = judged(found, rows, GAINING)
    answers = {"gain": replace(gain, verdict=None) if is_excepted else gain}
    if is_about(rows, EASY):
        hardly = opposite(sure_above(*ends, HARDLY))
        answers["easy task"] = judged(from_row(hardly, words, honest, columns), rows, EASY)
    if is_excepted:
        answers["bert-large"] = from_row(opposite(sure_above(*ends, 0.0)), words, honest, columns)
    return answers


def _how_many(rows: TidyRows, depths: Sequence[TrainedDepth]) -> dict[str, Answer]:
    """How many more layers are better, after correction for all depths that were tried.

    BERT: holds where one is. ALBERT: holds where one isn't. Where others are better, but one isn't,
    it decides if the best of them is sure to be better than it; without a run of one, or where no
    depth is better, it can't be told.
    """
    first = [each for each in compare_depths(depths) if each.depth.strategy == "first"]
    if not first:
        return {}
    best = max(first, key=lambda each: each.difference.value)
    added = _added(best)
    one = next((each for each in first if _added(each) == 1), None)
    one_is_enough = None
    if one is not None and one.verdict == "better":
        one_is_enough = True
    elif one is not None and best.verdict == "better":
        is_behind = above(compare_seeds(best.depth.scores, one.depth.scores), 0.0)
        one_is_enough = False if is_behind else None
    holds = opposite(one_is_enough) if SHARED in _model(rows) else one_is_enough
    words = f"highest mean with {added} more; {best.sentence}"
    return {"how many": answer(holds, words, best.difference)}


def _added(compared: DepthComparison) -> int:
    return compared.depth.n_layers - compared.baseline.n_layers


def _rules(depths: Sequence[TrainedDepth], baseline: TrainedDepth) -> dict[str, Answer]:
    """Rules 1 and 2, by the mean over all depths that were tried, seeds against seeds.

    One layer many times: holds where that is sure to be worse than the baseline. The last layers:
    holds where they are sure to bring less than half a point.
    """
    answers = {}
    for strategy in dict.fromkeys(depth.strategy for depth in depths):
        of_strategy = [depth for depth in depths if depth.strategy == strategy]
        change = _mean_change(of_strategy, baseline)
        words = f"{strategy}: {said(change)}, mean of {counted(len(of_strategy), 'depth')}"
        if strategy.startswith(REPEAT):
            answers["rule 1"] = answer(opposite(above(change, 0.0)), words, change)
        elif strategy == "last":
            answers["rule 2"] = answer(opposite(above(change, NO_BENEFIT)), words, change)
    return answers


def _mean_change(depths: Sequence[TrainedDepth], baseline: TrainedDepth) -> SeedDifference:
    by_seed: dict[int, list[float]] = {}
    for depth in depths:
        for row in depth.rows:
            by_seed.setdefault(row["seed"], []).append(row["value"])
    return compare_seeds([sum(own) / len(own) for own in by_seed.values()], baseline.scores)


def _model(rows: TidyRows) -> str:
    return str(rows[0].get("model", "")).lower()
