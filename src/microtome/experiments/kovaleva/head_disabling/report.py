"""Rows of head-disabling as a map, tables and words; and which head is the best one.

Rows of all metrics come in; what is shown and said is of the one that they call ``primary``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from microtome.errors import RunError
from microtome.experiments.kit.head_tables import MOST_NAMED, head_map, heads_named
from microtome.experiments.kit.judging import shown_rows
from microtome.experiments.kit.learning import CONSTANT, constant_of, not_learnt
from microtome.experiments.kit.wording import (
    change,
    counted,
    layers_named,
    percent,
    points,
    unit_of,
)
from microtome.views import TidyRow, TidyRows, View, table_of

SIGNIFICANT = 0.05
FREE = -0.01  # a head is free when it is sure to cost less than a point


def views(rows: TidyRows) -> tuple[View, ...]:
    """Layer by head, whole layers, the sets, and what was picked on dev and scored on test."""
    sets = [
        row
        for row in measured_rows(rows)
        if row["n_heads_disabled"] and row["layer"] is None and not row.get("chosen")
    ]
    scores = ("value", "delta", "low", "high")
    p_values = ("p", "p_holm", "p_bh", "p_maxt")
    best_layer = _best_layer_row(baseline_of(rows))
    layers = [*whole_layers(rows), *best_layer, *_constant_row(rows, "target")]
    sets += _constant_row(rows, "n_heads_disabled")
    heads = head_map(
        "Change when one head is disabled",
        single_heads(rows),
        "delta",
        value_label="points",
        marked=beyond_chance,
        diverging=True,
        percent=True,
        says="" if not_learnt([baseline_of(rows)], "") else which_matter(single_heads(rows)),
        note=lambda row: f"{points(row['low'])} to {points(row['high'])}",
    )
    tables = [
        table_of(title, shown, (name, *scores, *more, "one_answer"), percent=scores)
        for title, shown, name, more in (
            ("Whole layers disabled", layers, "target", p_values),
            ("Random sets of heads disabled", sets, "n_heads_disabled", ()),
        )
    ]
    if on_test := rows_on_test(rows):
        columns = ("target", "picked_on", "split", *scores, "n")
        title = "The best head and the best layer on dev, scored on test"
        tables.append(table_of(title, on_test, columns, percent=scores))
    return heads, *tables


def _best_layer_row(baseline: TidyRow) -> Iterator[TidyRow]:
    """What the best layer is worth, below the layers that it was picked from."""
    if baseline.get("honest_layer_gain") is not None:
        yield {
            "target": f"the best, on other {unit_of(baseline)}",
            "value": baseline["honest_layer_value"], "delta": baseline["honest_layer_gain"],
            "low": baseline["honest_layer_low"], "high": baseline["honest_layer_high"],
        }  # fmt: skip


def _constant_row(rows: TidyRows, name: str) -> list[TidyRow]:
    """What one constant answer scores, as the last line of a table; none where rows don't say."""
    constant = constant_of([baseline_of(rows)])
    return [] if constant is None else [{name: CONSTANT, "value": constant}]


def measured_rows(rows: TidyRows) -> list[TidyRow]:
    """The rows of the shown metric on the rows that were measured, not those of a test split."""
    return [row for row in shown_rows(rows) if not row.get("picked_on")]


def rows_on_test(rows: TidyRows) -> list[TidyRow]:
    """The head and the layer that dev rows picked, on the test split; none unless asked for."""
    return [row for row in shown_rows(rows) if row.get("picked_on")]


def baseline_of(rows: TidyRows) -> TidyRow:
    """The row of the model without any head disabled; it also says what the best head is worth."""
    baseline = next((row for row in measured_rows(rows) if row["target"] == "baseline"), None)
    if baseline is None:
        raise RunError(
            "head-disabling has no baseline row: its comparison hasn't run",
            "run the same command to resume",
        )
    return baseline


def single_heads(rows: TidyRows) -> list[TidyRow]:
    """The rows with one head disabled."""
    return [row for row in measured_rows(rows) if row["head"] is not None]


def whole_layers(rows: TidyRows) -> list[TidyRow]:
    """The rows with all heads of a layer disabled."""
    rows = measured_rows(rows)
    return [row for row in rows if row["layer"] is not None and row["head"] is None]


def beyond_chance(row: TidyRow) -> bool:
    """Whether a change is significant among all heads (max-T)."""
    return bool(row["p_maxt"] <= SIGNIFICANT)


def which_matter(heads: TidyRows) -> str:
    """The heads that are sure to be missed, in words; empty where none is."""
    missed = [row for row in heads if beyond_chance(row) and row["delta"] < 0]
    if not missed:
        return ""
    verb = "carries" if len(missed) == 1 else "carry"
    named = heads_named(sorted(missed, key=lambda row: row["delta"]), len(heads))
    if len(missed) <= MOST_NAMED:
        return f"{named} {verb} the task"
    where = layers_named(sorted({row["layer"] for row in missed}))
    return f"{named} {verb} the task, in {where[0].lower()}{where[1:]}"


def which_layers_matter(layers: TidyRows) -> str:
    """The layers without whose attention the score is sure to fall; empty where none is."""
    missed = [row["layer"] for row in layers if beyond_chance(row) and row["delta"] < 0]
    if not missed:
        return ""
    return f"{layers_named(missed)} {'carries' if len(missed) == 1 else 'carry'} the task"


def finding(rows: TidyRows) -> str:
    """Which heads matter by themselves; what the best head, the best layer and a set are worth."""
    baseline = baseline_of(rows)
    if why := not_learnt([baseline], "The model"):
        return why
    chosen = next((row for row in measured_rows(rows) if row.get("chosen") == "greedy"), None)
    sentences = [_which_matter(rows), _extremes(single_heads(rows)), _best_head(baseline)]
    if baseline.get("honest_layer_gain") is not None:
        sentences.append(_best_layer(baseline))
    if rows_on_test(rows):
        sentences.append(_on_test(rows_on_test(rows)))
    if chosen is not None:
        sentences.append(_greedy_set(chosen, unit_of(baseline)))
    return " ".join(sentences)


def _which_matter(rows: TidyRows) -> str:
    heads, baseline = single_heads(rows), baseline_of(rows)
    significant = [row for row in heads if beyond_chance(row)]
    n_hurt = sum(row["delta"] < 0 for row in significant)
    n_helped = sum(row["delta"] > 0 for row in significant)
    unedited = f"{baseline['metric']} without any edit: {percent(baseline['value'])}"
    if baseline.get("n") is not None:
        unedited += f" on {baseline['n']:,} {unit_of(baseline)}"
    if (constant := constant_of([baseline])) is not None:
        unedited += f", {CONSTANT}: {percent(constant)}"
    test = f"beyond chance (max-T, 5 %; {unedited})"
    if not n_hurt and not n_helped:
        return (
            f"No head matters by itself: none of {len(heads)}, disabled one at a time, changes"
            f" the score {test}."
        )
    effects = [
        f"disabling {n_heads} {verb}"
        for n_heads, verb in ((n_hurt, "hurts"), (n_helped, "helps"))
        if n_heads
    ]
    return f"Of {counted(len(heads), 'head')}, {' and '.join(effects)} {test}."


def _extremes(heads: TidyRows) -> str:
    worst = min(heads, key=lambda row: row["delta"])
    n_free = sum(row["low"] > FREE for row in heads)
    return (
        f"The largest loss is head {worst['target']}'s:"
        f" {change(worst['delta'], worst['low'], worst['high'])};"
        f" {n_free or 'none'} of the heads {'is' if n_free == 1 else 'are'} sure to cost less than"
        " 1 point (95 % each)."
    )


def _best_head(baseline: TidyRow) -> str:
    """What the best head is worth: the paper's way, and on rows that it wasn't picked on."""
    low, high, unit = baseline["honest_low"], baseline["honest_high"], unit_of(baseline)
    verdict = "a real gain" if low > 0 else "indistinguishable from none"
    return (
        f"The best head, picked and scored on the same {unit}, gains"
        f" {points(baseline['naive_gain'])} points; scored on other {unit}"
        f" {change(baseline['honest_gain'], low, high)}, {verdict}."
    )


def _best_layer(baseline: TidyRow) -> str:
    """The same for whole layers."""
    low, high = baseline["honest_layer_low"], baseline["honest_layer_high"]
    verdict = "a real gain" if low > 0 else "no gain that is sure"
    return (
        f"The best whole layer gains {points(baseline['naive_layer_gain'])} points on the"
        f" {unit_of(baseline)} it"
        f" was picked on and {change(baseline['honest_layer_gain'], low, high)} on others,"
        f" {verdict}."
    )


def _on_test(rows: TidyRows) -> str:
    """What dev rows picked, on the rows of the test split."""
    changes = " and ".join(
        f"{'head' if row['head'] is not None else 'layer'} {row['target'].removesuffix('.*')}"
        f" {change(row['delta'], row['low'], row['high'])}"
        for row in rows
    )
    return (
        f"Picked on {rows[0]['picked_on']} and scored on {rows[0]['n']:,} test"
        f" {unit_of(rows[0])}: {changes}."
    )


def _greedy_set(chosen: TidyRow, unit: str) -> str:
    """What a set of heads chosen greedily is worth where it wasn't chosen."""
    return (
        f"A set chosen greedily (most often {counted(chosen['n_heads_disabled'], 'head')}) changes"
        f" the score by {change(chosen['delta'], chosen['low'], chosen['high'])} on {unit} it"
        " wasn't chosen on."
    )


def summary(rows: TidyRows) -> dict[str, Any]:
    """The figures to believe."""
    baseline = baseline_of(rows)
    return {
        key: baseline.get(key)
        for key in (
            "metric", "value", "naive_gain", "naive_target", "honest_gain", "honest_low",
            "honest_high", "honest_target", "mean_delta", "mean_low", "mean_high",
            "smallest_significant", "honest_layer_gain", "honest_layer_low", "honest_layer_high",
            "honest_layer_target",
        )
    }  # fmt: skip


def best_head_edit(rows: TidyRows) -> str:
    """The edit that disables the head which honest selection picks most often: disable(3.7)."""
    best = baseline_of(rows)["honest_target"]
    edit: str = next(row["edit"] for row in single_heads(rows) if row["target"] == best)
    return edit
