"""Rows of frozen-probing as curves, a table and words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from microtome.experiments.beside import REINITIALIZED
from microtome.experiments.experiment import Row, Rows, percent, points
from microtome.experiments.seed_curves import TOP_AXIS, by_place, curve_of, mean_of
from microtome.experiments.training_sizes import size_name, sizes
from microtome.views import Curve, View, table_of

RECIPES = ("paper", "converged")
PRETRAINED, RANDOM, MAJORITY = "pretrained", "random", "majority"


def recipes(rows: Rows) -> list[str]:
    """The recipes among some rows, the paper's first."""
    return [one for one in RECIPES if any(row["recipe"] == one for row in rows)]


def _primary(rows: Iterable[Row], encoder: str, fraction: float) -> list[Row]:
    return [
        row
        for row in rows
        if row["encoder"] == encoder
        and row["metric"] == row["primary"]
        and row["fraction"] == fraction
    ]


def probed(rows: Rows, recipe: str, fraction: float, encoder: str = PRETRAINED) -> list[Row]:
    """The primary scores of one recipe and size."""
    return [row for row in _primary(rows, encoder, fraction) if row["recipe"] == recipe]


def beside(rows: Rows, fraction: float) -> list[Row]:
    """The primary scores of the re-initialisation beside, at one size."""
    return _primary(rows, REINITIALIZED, fraction)


def views(rows: Rows) -> tuple[View, ...]:
    """One picture per training size: the probes, their baselines, re-initialisation if given."""
    return (*(_curve(rows, size) for size in sizes(rows)), _table(rows))


def _curve(rows: Rows, size: float) -> Curve:
    lines = []
    for recipe in recipes(rows):
        lines.append(curve_of(probed(rows, recipe, size), "removed", f"frozen, {recipe}"))
        control = probed(rows, recipe, size, RANDOM)
        name = f"random encoder, {recipe}"
        lines.append(curve_of(control, "removed", name, is_control=True))
    lines.append(curve_of(beside(rows, size), "removed", "re-initialised, all fine-tuned"))
    # The commonest label reads nothing: the same at every place.
    places = sorted({row["removed"] for row in rows if row["removed"] is not None})
    common = [
        {**row, "removed": place} for row in _primary(rows, MAJORITY, size) for place in places
    ]
    lines.append(curve_of(common, "removed", "commonest label", is_control=True))
    title = f"Classifiers on frozen layers, {size_name(size)}"
    return Curve(title, TOP_AXIS, rows[0]["primary"], tuple(line for line in lines if line))


def _table(rows: Rows) -> View:
    columns = (
        "recipe", "fraction", "seed", "removed", "value", "delta", "delta_low", "delta_high",
    )  # fmt: skip
    own = [
        dict(row)
        for row in rows
        if row["encoder"] == PRETRAINED and row["metric"] == row["primary"]
    ]
    title = "Every depth, and the change against the whole encoder on the same rows"
    return table_of(title, own, columns, percent=columns[4:])


def finding(rows: Rows) -> str:
    """Where the frozen layers know the task best, in words computed from rows."""
    return " ".join(
        _of(rows, recipe, size) for size in sizes(rows) for recipe in recipes(rows)
        if probed(rows, recipe, size)
    )  # fmt: skip


def _of(rows: Rows, recipe: str, size: float) -> str:
    curve = by_place(probed(rows, recipe, size), "removed")
    best = max(curve, key=lambda k: mean_of(curve[k]))
    controls = by_place(probed(rows, recipe, size, RANDOM), "removed")
    common = mean_of(_primary(rows, MAJORITY, size))
    words = (
        f"With {size_name(size)} and the {recipe} recipe the {rows[0]['primary']} is highest,"
        f" {percent(mean_of(curve[best]))}, with {best} of {max(curve)} layers removed"
        f" ({percent(mean_of(curve[0]))} with none"
    )
    if best and len(curve[best]) == 1:
        row = curve[best][0]
        words += f": {points(row['delta'])} points, {points(row['delta_low'])} to"
        words += f" {points(row['delta_high'])}, picked and scored on the same rows"
    if controls:
        highest = max(mean_of(own) for own in controls.values())
        words += f"); a random encoder reaches {percent(highest)}, the commonest label"
    else:
        words += "); the commonest label"
    return f"{words} {percent(common)}."


def summary(rows: Rows) -> dict[str, Any]:
    """The best depth of every recipe and size."""
    found: dict[str, Any] = {}
    for size in sizes(rows):
        for recipe in recipes(rows):
            curve = by_place(probed(rows, recipe, size), "removed")
            if curve:
                best = max(curve, key=lambda k: mean_of(curve[k]))
                key = f"{recipe}, {size:g}"
                found[key] = {"best_removed": best, "best": mean_of(curve[best])}
                found[key]["whole"] = mean_of(curve[0])
    return found
