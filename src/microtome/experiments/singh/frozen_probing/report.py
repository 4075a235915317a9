"""Rows of frozen-probing as curves, a table and words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from microtome.experiments.kit.learning import CONSTANT, constant_of, has_learnt, no_better
from microtome.experiments.kit.seed_curves import (
    TOP_AXIS,
    by_place,
    curve_of,
    mean_of,
    size_name,
    sizes,
)
from microtome.experiments.kit.wording import change, percent
from microtome.experiments.singh.frozen_probing.plan import (
    MAJORITY,
    PRETRAINED,
    RANDOM,
    RECIPES,
    REINITIALIZED,
)
from microtome.views import Curve, TidyRow, TidyRows, View, table_of


def recipes(rows: TidyRows) -> list[str]:
    """The recipes among some rows, the paper's first."""
    return [recipe for recipe in RECIPES if any(row["recipe"] == recipe for row in rows)]


def probed(
    rows: TidyRows, recipe: str, fraction: float, encoder: str = PRETRAINED
) -> list[TidyRow]:
    """The primary scores of one recipe and size."""
    return [row for row in _primary(rows, encoder, fraction) if row["recipe"] == recipe]


def reinitialized(rows: TidyRows, fraction: float) -> list[TidyRow]:
    """The primary scores of the re-initialisation that ``--beside`` named, at one size."""
    return _primary(rows, REINITIALIZED, fraction)


def _primary(rows: Iterable[TidyRow], encoder: str, fraction: float) -> list[TidyRow]:
    return [
        row
        for row in rows
        if row["encoder"] == encoder
        and row["metric"] == row["primary"]
        and row["fraction"] == fraction
    ]


def views(rows: TidyRows) -> tuple[View, ...]:
    """One picture per training size: the probes, their baselines, re-initialisation if named."""
    return (*(_curve(rows, size) for size in sizes(rows)), _table(rows))


def _curve(rows: TidyRows, size: float) -> Curve:
    lines = []
    for recipe in recipes(rows):
        lines.append(curve_of(probed(rows, recipe, size), "removed", f"frozen, {recipe}"))
        control = probed(rows, recipe, size, RANDOM)
        name = f"random encoder, {recipe}"
        lines.append(curve_of(control, "removed", name, is_control=True))
    lines.append(curve_of(reinitialized(rows, size), "removed", "re-initialised, all fine-tuned"))
    # The commonest label reads nothing: the same at every place.
    places = sorted({row["removed"] for row in rows if row["removed"] is not None})
    common = [
        {**row, "removed": place} for row in _primary(rows, MAJORITY, size) for place in places
    ]
    lines.append(curve_of(common, "removed", "commonest label", is_control=True))
    title = f"Classifiers on frozen layers, {size_name(size)}"
    return Curve(title, TOP_AXIS, rows[0]["primary"], tuple(line for line in lines if line))


def _table(rows: TidyRows) -> View:
    columns = (
        "recipe", "fraction", "seed", "removed", "value", "delta", "delta_low", "delta_high",
        "one_answer",
    )  # fmt: skip
    shown = [
        row for row in rows if row["encoder"] == PRETRAINED and row["metric"] == row["primary"]
    ]
    title = "Every depth, and the change against the whole encoder on the same rows"
    constant = constant_of(shown)
    last = [] if constant is None else [{"recipe": CONSTANT, "value": constant}]
    return table_of(title, [*shown, *last], columns, percent=columns[4:8])


def finding(rows: TidyRows) -> str:
    """Where the frozen layers know the task best, in words computed from rows."""
    return " ".join(
        _best_depth(rows, recipe, size)
        for size in sizes(rows)
        for recipe in recipes(rows)
        if probed(rows, recipe, size)
    )


def _best_depth(rows: TidyRows, recipe: str, size: float) -> str:
    curve = by_place(probed(rows, recipe, size), "removed")
    best = max(curve, key=lambda removed: mean_of(curve[removed]))
    start, score = f"With {size_name(size)} and the {recipe} recipe", percent(mean_of(curve[best]))
    if not has_learnt(curve[best]):
        return (
            f"{start}, no depth has learnt the task: the {rows[0]['primary']} is at most {score}"
            f"{no_better(curve[best])}. {_baselines(rows, recipe, size)}"
        )
    text = (
        f"{start}, the {rows[0]['primary']} is highest with"
        f" {f'{best} of {max(curve)} layers' if best else 'no layer'} removed:"
        f" {score}"
    )
    if best and len(curve[best]) == 1 and has_learnt(curve[0]):
        row = curve[best][0]
        gain = change(row["delta"], row["delta_low"], row["delta_high"])
        text += f", {gain} against the whole encoder, picked and scored on the same rows"
    elif best:
        whole = percent(mean_of(curve[0]))
        text += f", {whole} for the whole encoder{no_better(curve[0])}"
    return f"{text}. {_baselines(rows, recipe, size)}"


def _baselines(rows: TidyRows, recipe: str, size: float) -> str:
    common = percent(mean_of(_primary(rows, MAJORITY, size)))
    controls = by_place(probed(rows, recipe, size, RANDOM), "removed")
    if not controls:
        return f"The commonest label reaches {common}."
    highest = max(mean_of(at_place) for at_place in controls.values())
    return f"A random encoder reaches {percent(highest)}, the commonest label {common}."


def summary(rows: TidyRows) -> dict[str, Any]:
    """The best depth of every recipe and size."""
    best_depths: dict[str, Any] = {}
    for size in sizes(rows):
        for recipe in recipes(rows):
            curve = by_place(probed(rows, recipe, size), "removed")
            if curve:
                best = max(curve, key=lambda removed: mean_of(curve[removed]))
                best_depths[f"{recipe}, {size:g}"] = {
                    "best_removed": best,
                    "best": mean_of(curve[best]),
                    "whole": mean_of(curve[0]),
                }
    return best_depths
