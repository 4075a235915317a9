"""Rows of layer removal as curves, tables and words."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from microtome.experiments.kit import learning
from microtome.experiments.kit.judging import TEST, shown_rows
from microtome.experiments.kit.wording import change, counted, layers_named, percent, unit_of
from microtome.views import (
    Bars,
    BarSeries,
    Cell,
    Curve,
    Series,
    Table,
    TidyRow,
    TidyRows,
    View,
    series_of,
    table_of,
)

BEST = "best"
SIGNIFICANT = 0.05  # among all single layers (max-T)
FREE = -0.01  # a cut is free when it is sure to cost less than a point
PERCENT = ("value", "delta", "low", "high")


def baseline_of(rows: TidyRows) -> TidyRow:
    """The whole model."""
    return next(row for row in shown_rows(rows) if row["target"] == "baseline")


def measured_rows(rows: TidyRows) -> list[TidyRow]:
    """The rows that have a number: the baselines, and the cuts that weren't refused."""
    shown = (row for row in shown_rows(rows) if not row.get("refused"))
    return [row for row in shown if row["strategy"] not in (BEST, TEST)]


def measured_cuts(rows: TidyRows) -> list[TidyRow]:
    """The cuts of single layers and of both ends that weren't refused."""
    return [row for row in measured_rows(rows) if row["target"] != "baseline"]


def best_cuts(rows: TidyRows) -> list[TidyRow]:
    """The best cut of every number of layers, the most layers first."""
    best = (row for row in rows if row["strategy"] == BEST)
    return sorted(best, key=lambda row: -row["layers"])


def cuts_on_test(rows: TidyRows) -> list[TidyRow]:
    """The best cuts of every number of layers on dev, on the test split; none unless asked for."""
    return [row for row in shown_rows(rows) if row["strategy"] == TEST]


def free_cuts(rows: TidyRows) -> list[TidyRow]:
    """The best cuts that are sure to cost less than a point, the fewest layers first."""
    free = [row for row in best_cuts(rows) if row["low"] > FREE and not row["one_answer"]]
    return sorted(free, key=lambda row: row["layers"])


def views(rows: TidyRows) -> tuple[View, ...]:
    """The best cut of every size, score against layers left, all prices, refused cuts."""
    curve = Curve(
        "Layers removed, without training", "layers left", baseline_of(rows)["metric"],
        _lines(rows), says=how_many_can_go(rows),
    )  # fmt: skip
    columns = ("edit", "layers", "value", "delta", "low", "high", "p_holm", "parameters", "speed")
    title = "What each cut costs and saves"
    by_cost = sorted(measured_cuts(rows), key=lambda row: -row["delta"])
    prices = table_of(title, by_cost, columns, percent=PERCENT)
    figures: list[View] = [curve, *_single_layers(rows)]
    shown = [*figures, prices]
    if best := best_cuts(rows):
        picked = ("edit", "layers", "value", "delta", "low", "high", "share", "candidates",
                  "parameters", "speed", "latency_ms")  # fmt: skip
        title = (
            f"The best cut of every number of layers, picked on other {unit_of(baseline_of(rows))}"
        )
        shown.insert(len(figures), table_of(title, best, picked, percent=(*PERCENT, "share")))
    if on_test := cuts_on_test(rows):
        on_split = ("edit", "layers", "value", "delta", "low", "high", "n", "one_answer")
        title = "The best cut of every number of layers on dev, scored on test"
        shown.append(table_of(title, on_test, on_split, percent=PERCENT))
    if refused := [row for row in rows if row.get("refused")]:
        shown.append(table_of("Cuts that can't be made", refused, ("edit", "refused")))
    return tuple(shown)


def single_layers(rows: TidyRows) -> list[TidyRow]:
    """The cuts of one layer each, in the order of the layers."""
    singles = [row for row in measured_cuts(rows) if row["strategy"] == "each"]
    return sorted(singles, key=lambda row: int(row["target"]))


def layers_that_matter(rows: TidyRows) -> str:
    """The layers that are sure to be missed, one at a time; empty where none or all are."""
    singles = single_layers(rows)
    missed = [row for row in singles if row["delta"] < 0 and row["p_maxt"] <= SIGNIFICANT]
    if not missed or len(missed) == len(singles):
        return "No layer can be spared" if missed else ""
    verb = "carries" if len(missed) == 1 else "carry"
    return f"{layers_named([int(row['target']) for row in missed])} {verb} the task"


def how_many_can_go(rows: TidyRows) -> str:
    """How many layers are sure to be enough, or that none can go; empty where neither is sure."""
    if not has_learnt(rows):
        return ""
    n_layers, free = baseline_of(rows)["layers"], free_cuts(rows)
    if free:
        return f"{free[0]['layers']} of {n_layers} layers keep the score within a point"
    best = best_cuts(rows)
    if best and all(row["high"] is not None and row["high"] < FREE for row in best):
        return "Every cut costs more than a point"
    return ""


def _single_layers(rows: TidyRows) -> tuple[Bars, ...]:
    """What each layer is worth by itself."""
    singles = single_layers(rows)
    if not singles:
        return ()
    low, high = (tuple(row[end] for row in singles) for end in ("low", "high"))
    changes = BarSeries("change", tuple(row["delta"] for row in singles), low, high)
    names = tuple(row["target"] for row in singles)
    title, label = "One layer removed, without training", "change in points"
    said = layers_that_matter(rows)
    return (Bars(title, "layer removed", label, names, (changes,), says=said),)


def front(rows: TidyRows) -> tuple[View, ...]:
    """For the front page: the whole model, the best cut of every size, and the constant answer."""
    columns = ("variant", "layers", "score", "change", "low", "high", "parameters", "speed", "ms")
    base = baseline_of(rows)
    shared = ", layers unshared" if base["edit"] else ""
    lines: list[tuple[Cell, ...]] = [
        (f"as it is{shared}", base["layers"], base["value"], None, None, None, base["parameters"],
         1.0, base["latency_ms"])
    ]  # fmt: skip
    for row in best_cuts(rows):
        variant = f"{row['edit']} (one answer only)" if row["one_answer"] else row["edit"]
        prices = (row["parameters"], row["speed"], row["latency_ms"])
        change_cells = (row["delta"], row["low"], row["high"])
        lines.append((variant, row["layers"], row["value"], *change_cells, *prices))
    constant = base["constant_value"]
    lines.append((learning.CONSTANT, None, constant, constant - base["value"], *(None,) * 5))
    unit = unit_of(base)
    title = (
        f"What may be cut without training: {base['metric']} on {base['n']:,} {unit}, each cut"
        f" picked on other {unit}; ms for one text"
    )
    return (Table(title, columns, tuple(lines), percent=("score", "change", "low", "high")),)


def _lines(rows: TidyRows) -> tuple[Series, ...]:
    """A line per way of removing, and the constant answer's score."""
    lines = []
    for side in ("top", "bottom"):
        cuts = [row for row in measured_rows(rows) if row["strategy"] == side]
        if side == "bottom" and len(cuts) < 2:
            continue  # all of them refused: the baseline alone is no curve
        cuts.sort(key=lambda row: row["layers"])
        ends = ("value_low", "value_high")
        lines.append(series_of(f"removed from the {side}", cuts, "layers", "value", ends=ends))
    base = baseline_of(rows)
    if best := best_cuts(rows):
        low = tuple(base["value"] + row["low"] for row in best)
        high = tuple(min(1.0, base["value"] + row["high"]) for row in best)
        line = series_of(f"best cut, picked on other {unit_of(base)}", best, "layers", "value")
        lines.append(replace(line, low=low, high=high))
    layers = (float(row["layers"]) for row in measured_rows(rows))
    return (*lines, *learning.constant_line([base], layers))


def finding(rows: TidyRows) -> str:
    """What may be cut, what hurts most, and what can't be cut."""
    parts = (recommendation, _on_test, _worst_layer, _baseline, _refused)
    return " ".join(words for part in parts if (words := part(rows)))


def has_learnt(rows: TidyRows) -> bool:
    """Whether the whole model is better than one constant answer: else no cut means anything."""
    return learning.has_learnt([baseline_of(rows)])


def cut_to_make(rows: TidyRows) -> TidyRow | None:
    """The smallest model that is sure to cost less than a point, else the one nearest to it."""
    best = [row for row in best_cuts(rows) if not row["one_answer"]]
    if not best or not has_learnt(rows):
        return None
    return next(iter(free_cuts(rows)), max(best, key=lambda row: row["low"]))


def recommendation(rows: TidyRows) -> str:
    """What to cut, what it costs, and how sure that is."""
    base, cut = baseline_of(rows), cut_to_make(rows)
    if not has_learnt(rows):
        return (
            "The model hasn't learnt the task: it is no better than one constant answer, so what a"
            " cut changes means nothing."
        )
    if cut is None:
        return "No cut is possible that still reads the rows."
    unit = unit_of(base)
    if cut["low"] > FREE:
        return (
            f"Keep {cut['layers']} of {base['layers']} layers ({cut['edit']}): {described(cut)},"
            f" sure to cost less than 1 point on {unit} it wasn't picked on."
        )
    words = (
        "No cut is sure to cost less than 1 point without training; the nearest is"
        f" {cut['edit']}: {described(cut)}"
    )
    enough = rows_to_decide(cut)
    return f"{words}." if enough is None else f"{words}; about {enough:,} {unit} would decide it."


def _on_test(rows: TidyRows) -> str:
    """What the best cut of that size on dev is worth on the test split; empty unless asked for."""
    cut = cut_to_make(rows)
    same_size = [row for row in cuts_on_test(rows) if cut and row["layers"] == cut["layers"]]
    if not same_size:
        return ""
    row = same_size[0]
    return (
        f"Picked on {row['picked_on']} and scored on {row['n']:,} test"
        f" {unit_of(baseline_of(rows))}, {row['edit']} changes the {row['metric']} by"
        f" {change(row['delta'], row['low'], row['high'])}."
    )


def described(row: TidyRow) -> str:
    """A cut's change and its speed: −0.4 points (−1.1 to +0.3), 1.5× faster."""
    cost = change(row["delta"], row["low"], row["high"])
    return cost if row["speed"] is None else f"{cost}, {row['speed']:.2f}× the speed"


def rows_to_decide(row: TidyRow) -> int | None:
    """How many rows would narrow the interval enough; None where the cost itself is too high."""
    room, half = row["delta"] - FREE, row["delta"] - row["low"]
    if room <= 0 or half <= 0:
        return None
    needed: float = row["n"] * (half / room) ** 2
    digits = max(0, len(str(math.ceil(needed))) - 2)
    step: int = 10**digits
    return math.ceil(needed / step) * step


def _worst_layer(rows: TidyRows) -> str:
    singles = single_layers(rows)
    if not singles:
        return ""
    worst = min(singles, key=lambda row: row["delta"])
    if worst["delta"] >= 0:
        return "Removing one layer lowers the score nowhere."
    cost = change(worst["delta"], worst["low"], worst["high"])
    return f"Removing layer {worst['target']} hurts most: {cost}."


def _baseline(rows: TidyRows) -> str:
    base = baseline_of(rows)
    words = (
        f"The {base['metric']} with all {base['layers']} layers is {percent(base['value'])}; one"
        f" constant answer scores {percent(base['constant_value'])}"
    )
    if base["one_answer"]:
        words += ", and the model gives nothing else"
    if base["edit"]:
        words += "; layers share weights, so each got a copy of its own first, in the baseline too"
    return f"{words}."


def _refused(rows: TidyRows) -> str:
    """The cuts that the model's family refuses, and why."""
    refused = [row for row in rows if row.get("refused")]
    if not refused:
        return ""
    return (
        f"{counted(len(refused), 'cut')} can't be made in this model"
        f" (the first: {refused[0]['refused']})."
    )


def summary(rows: TidyRows) -> dict[str, Any]:
    """The smallest model that is sure to cost less than a point."""
    free = free_cuts(rows)
    return {
        "deepest_free_cut": free[0]["edit"] if free else None,
        "n_free_cuts": len(free),
        "n_refused": sum(bool(row.get("refused")) for row in rows),
    }
