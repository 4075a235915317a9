"""The paper's claims about disabled heads: the best, a random one, some, and whole layers."""

from __future__ import annotations

from microtome.experiments.kit.learning import not_learnt
from microtome.experiments.kit.wording import change, points
from microtome.experiments.kovaleva.head_disabling.report import (
    baseline_of,
    beyond_chance,
    rows_on_test,
    single_heads,
    whole_layers,
)
from microtome.views import TidyRow, TidyRows


def claims(rows: TidyRows) -> dict[str, str]:
    """What each claim looks like in these rows; one that they don't answer is left out."""
    baseline = baseline_of(rows)
    if why := not_learnt([baseline], "The model"):
        return dict.fromkeys(("best head", "random head", "some heads", "whole layer"), why)
    head, layer = (
        next((row for row in rows_on_test(rows) if (row["head"] is None) is whole), None)
        for whole in (False, True)
    )
    answers = {
        "best head": _best_head(baseline) + _on_test(head),
        "random head": _random_head(baseline),
        "some heads": _some_heads(single_heads(rows)),
        "whole layer": _whole_layer(whole_layers(rows), baseline) + _on_test(layer),
    }
    return {key: words for key, words in answers.items() if words}


def _best_head(baseline: TidyRow) -> str:
    honest = _change(baseline, "honest_gain", "honest_low", "honest_high")
    return f"{points(baseline['naive_gain'])} points the paper's way; {honest} on other rows"


def _on_test(row: TidyRow | None) -> str:
    return "" if row is None else f"; {_change(row, 'delta', 'low', 'high')} on test"


def _random_head(baseline: TidyRow) -> str:
    """The mean over all heads; a run of an earlier version has it for accuracy alone."""
    if baseline.get("mean_delta") is None:
        return ""
    return _change(baseline, "mean_delta", "mean_low", "mean_high")


def _some_heads(heads: TidyRows) -> str:
    helping = [row for row in heads if row["delta"] > 0]
    n_sure = sum(beyond_chance(row) for row in helping)
    sure = f"beyond chance (max-T, 5 %): {n_sure or 'none'}"
    return f"{len(helping) or 'none'} of {len(heads)} heads; {sure}"


def _whole_layer(layers: TidyRows, baseline: TidyRow) -> str:
    """The paper's way, without intervals: both ends are picked; then what holds on other rows."""
    ends = min(layers, key=lambda row: row["delta"]), max(layers, key=lambda row: row["delta"])
    worst, best = (f"layer {row['layer']} {points(row['delta'])}" for row in ends)
    answers = [f"from {worst} to {best} points the paper's way"]
    if baseline.get("honest_layer_gain") is not None:  # a run of an earlier version has none
        honest = _change(baseline, "honest_layer_gain", "honest_layer_low", "honest_layer_high")
        answers.append(f"the best {honest} on other rows")
    sure = [row["delta"] > 0 for row in layers if beyond_chance(row)]
    helping, hurting = (sure.count(helps) or "none" for helps in (True, False))
    counts = f"helping {helping}, hurting {hurting} of {len(layers)}"
    return "; ".join([*answers, f"beyond chance (max-T, 5 %): {counts}"])


def _change(row: TidyRow, value: str, low: str, high: str) -> str:
    return change(row[value], row[low], row[high])
