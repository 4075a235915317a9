"""Paper beside measured: the papers' claims and figures, each with what this run's rows say.

A claim in words stands in every section of its experiment. A number of a table stands there only
when the model and the task are the paper's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from microtome.papers import Claim, PaperFigure, claims, matching
from microtome.report.page import Reported
from microtome.report.text import is_number, percents

Rows = Sequence[Mapping[str, Any]]

ELSEWHERE = "see the finding"
NOT_COMPARED = "not measured here"
NOT_RUN = "not part of this run"
# What the papers' tables show: the first layers duplicated, members picked on the rows they score.
_PAPERS_STRATEGIES = (None, "baseline", "first")
_PAPERS_SELECTIONS = (None, "none", "same rows")
FREE = -0.01  # a cut is free when it is sure to cost less than a point


def reported(
    experiment: str,
    model: str,
    task: str,
    rows: Rows,
    *,
    measured: Mapping[str, str] | None = None,
) -> tuple[Reported, ...]:
    """The comparisons of one section. ``measured`` gives, or replaces, what a claim's key says."""
    if not rows:
        return ()
    known = {key: says(rows) for key, says in MEASURES.get(experiment, {}).items()}
    texts = {key: text for key, text in known.items() if text} | dict(measured or {})
    otherwise = NOT_COMPARED if texts else ELSEWHERE
    found = [_claim(one, texts.get(one.key, otherwise)) for one in claims(experiment)]
    return (*found, *(_figure(one, rows) for one in matching(model, task, experiment)))


def _claim(claim: Claim, measured: str) -> Reported:
    words = f"{claim.words} ({claim.note})" if claim.note else claim.words
    return Reported(claim.what, words, measured, claim.source)


def _figure(figure: PaperFigure, rows: Rows) -> Reported:
    change = figure.metric == "gain"
    paper = percents(figure.value, plus=change) if change else f"{100 * figure.value:.2f} %"
    if figure.note:
        paper = f"{paper} ({figure.note})"
    return Reported(
        f"{figure.metric} of {figure.model} on {figure.task}: {figure.setting}",
        paper,
        _mean(figure, rows),
        figure.source,
    )


def _mean(figure: PaperFigure, rows: Rows) -> str:
    """The mean over the rows that a figure is about: over seeds, where there are several."""
    if not figure.columns:
        return ELSEWHERE
    values = [
        row["value"]
        for row in rows
        if row.get("metric") == figure.metric
        and row.get("stage") in (None, "finetuned")
        and row.get("strategy") in _PAPERS_STRATEGIES
        and row.get("selection") in _PAPERS_SELECTIONS
        and all(row.get(column) == wanted for column, wanted in figure.columns)
        and is_number(row.get("value"))
    ]
    if not values:
        return NOT_RUN
    runs = "one run" if len(values) == 1 else f"mean of {len(values)} runs"
    return f"{100 * fmean(values):.2f} % ({runs})"


def _interval(row: Mapping[str, Any], value: str, low: str, high: str) -> str:
    cells = [row.get(name) for name in (value, low, high)]
    if not all(is_number(cell) for cell in cells):
        return ""
    texts = [percents(float(cell), plus=True) for cell in cells if cell is not None]
    return f"{texts[0]} points ({texts[1]} to {texts[2]})"


def _baseline(rows: Rows) -> Mapping[str, Any]:
    return next((row for row in rows if row.get("target") == "baseline"), {})


def _best_head(rows: Rows) -> str:
    base = _baseline(rows)
    honest = _interval(base, "honest_gain", "honest_low", "honest_high")
    if not honest or not is_number(base.get("naive_gain")):
        return ""
    naive = percents(base["naive_gain"], plus=True)
    return f"{naive} points the paper's way; {honest} on other rows"


def _random_head(rows: Rows) -> str:
    return _interval(_baseline(rows), "mean_delta", "mean_low", "mean_high")


def _some_heads(rows: Rows) -> str:
    heads = [row for row in rows if row.get("head") is not None]
    if not heads:
        return ""
    up = [row for row in heads if row["delta"] > 0]
    sure = [row for row in up if row["p_maxt"] <= 0.05]
    return f"{len(up)} of {len(heads)} heads; beyond chance (max-T, 5 %): {len(sure)}"


def _whole_layer(rows: Rows) -> str:
    layers = [row for row in rows if row.get("layer") is not None and row.get("head") is None]
    if not layers:
        return ""
    ends = min(layers, key=lambda r: r["delta"]), max(layers, key=lambda r: r["delta"])
    texts = [f"layer {row['layer']} {_interval(row, 'delta', 'low', 'high')}" for row in ends]
    return f"from {texts[0]} to {texts[1]}"


def _removal(rows: Rows) -> str:
    cuts = [row for row in rows if row.get("target") != "baseline" and is_number(row.get("low"))]
    free = [row for row in cuts if row["low"] > FREE]
    return f"{len(free)} of {len(cuts)} cuts are sure to cost less than 1 point, without training"


MEASURES: Mapping[str, Mapping[str, Callable[[Rows], str]]] = {
    "head-disabling": {
        "best head": _best_head,
        "random head": _random_head,
        "some heads": _some_heads,
        "whole layer": _whole_layer,
    },
    "layer-removal": {"removal": _removal},
}
