"""The paper's claims about disabled heads: the best, a random one, some, and whole layers."""

from __future__ import annotations

from microtome.experiments.kit.answer import from_row, judged, sure_above, unlearnt, verdict
from microtome.experiments.kit.learning import not_learnt
from microtome.experiments.kit.wording import change, points
from microtome.experiments.kovaleva.head_disabling.report import (
    baseline_of,
    beyond_chance,
    rows_on_test,
    single_heads,
    whole_layers,
)
from microtome.papers.answer import Answer
from microtome.views import TidyRow, TidyRows

LEAST_GAIN = 0.001  # the smallest that the paper reports: 0.1 points, on STS-B
HELPED_AT_RANDOM = ("mrpc", "rte")
LOSING = ("qnli", "mnli")


def claims(rows: TidyRows) -> dict[str, Answer]:
    """What each claim looks like in these rows; one that they don't answer is left out."""
    baseline = baseline_of(rows)
    if why := not_learnt([baseline], "The model"):
        found = dict.fromkeys(("best head", "some heads", "whole layer"), unlearnt(why))
        return found | {"random head": judged(unlearnt(why), rows, HELPED_AT_RANDOM)}
    head, layer = (
        next((row for row in rows_on_test(rows) if (row["head"] is None) is whole), None)
        for whole in (False, True)
    )
    answers = {
        "best head": _best_head(baseline, _on_test(head)),
        "some heads": _some_heads(single_heads(rows)),
        "whole layer": _whole_layer(rows, whole_layers(rows), baseline, _on_test(layer)),
    }
    if baseline.get("mean_delta") is not None:  # a run of an earlier version has it for accuracy
        answers["random head"] = judged(_random_head(baseline), rows, HELPED_AT_RANDOM)
    return answers


def _best_head(baseline: TidyRow, on_test: str) -> Answer:
    """What the best head is worth, picked the paper's way and on other rows.

    Holds where the latter is sure to help; doesn't hold where it is sure to help by less than the
    paper's least gain.
    """
    columns = ("honest_gain", "honest_low", "honest_high")
    words = (
        f"{points(baseline['naive_gain'])} points the paper's way;"
        f" {_change(baseline, *columns)} on other rows{on_test}"
    )
    return from_row(_helps(baseline, *columns[1:]), words, baseline, columns)


def _helps(row: TidyRow, low: str, high: str) -> bool | None:
    """Sure to help, or sure to help by less than 0.1 points, which is the paper's least gain."""
    return True if row[low] > 0 else False if row[high] < LEAST_GAIN else None


def _on_test(row: TidyRow | None) -> str:
    return "" if row is None else f"; {_change(row, 'delta', 'low', 'high')} on test"


def _random_head(baseline: TidyRow) -> Answer:
    """The mean over all heads: holds where its interval is above 0."""
    columns = ("mean_delta", "mean_low", "mean_high")
    holds = sure_above(baseline["mean_low"], baseline["mean_high"], 0.0)
    return from_row(holds, _change(baseline, *columns), baseline, columns)


def _some_heads(heads: TidyRows) -> Answer:
    """How many heads help.

    Holds where one does beyond chance (max-T over all heads); doesn't hold where every head's
    interval is below the paper's least gain.
    """
    helping = [row for row in heads if row["delta"] > 0]
    n_sure = sum(beyond_chance(row) for row in helping)
    none_helps = all(row["high"] < LEAST_GAIN for row in heads)
    holds = True if n_sure else False if none_helps else None
    words = (
        f"{len(helping) or 'none'} of {len(heads)} heads;"
        f" beyond chance (max-T, 5 %): {n_sure or 'none'}"
    )
    return Answer(words, verdict(holds), n_sure / len(heads), unit="%")


def _whole_layer(rows: TidyRows, layers: TidyRows, baseline: TidyRow, on_test: str) -> Answer:
    """The paper's way, without intervals: both ends are picked; then what holds on other rows.

    Holds where the best layer, picked on other rows, is sure to help; of QNLI and MNLI the paper
    says that layers lose, and the numbers are given alone.
    """
    ends = min(layers, key=lambda row: row["delta"]), max(layers, key=lambda row: row["delta"])
    worst, best = (f"layer {row['layer']} {points(row['delta'])}" for row in ends)
    texts = [f"from {worst} to {best} points the paper's way"]
    columns = ("honest_layer_gain", "honest_layer_low", "honest_layer_high")
    holds = None
    if baseline.get(columns[0]) is not None:  # a run of an earlier version has none
        texts.append(f"the best {_change(baseline, *columns)} on other rows")
        holds = _helps(baseline, *columns[1:])
    sure = [row["delta"] > 0 for row in layers if beyond_chance(row)]
    helping, hurting = (sure.count(helps) or "none" for helps in (True, False))
    counts = f"helping {helping}, hurting {hurting} of {len(layers)}"
    words = "; ".join([*texts, f"beyond chance (max-T, 5 %): {counts}"]) + on_test
    found = from_row(holds, words, baseline, columns)
    if rows[0].get("task") in LOSING:
        return Answer(found.words, None, found.value, found.low, found.high)
    return found


def _change(row: TidyRow, value: str, low: str, high: str) -> str:
    return change(row[value], row[low], row[high])
