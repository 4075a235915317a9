"""Rows of head importance as maps, tables and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from microtome.experiments.kit.head_tables import head_map, name_of
from microtome.experiments.kit.wording import change, correlation, counted
from microtome.statistics import Interval, bootstrap, spearman
from microtome.views import Table, TidyRow, TidyRows, View, table_of

LEAST_UNITS = 5  # to correlate
SHOWN_HEADS = 10
NOT_AN_IMPORTANCE = "attention rollout: where attention leads, not an importance"


def views(rows: TidyRows) -> tuple[View, ...]:
    """Importance by head, the measured change by head, layers, the first heads, and rollout."""
    heads = of_unit(rows, "head")
    shown: list[View] = [
        head_map("Gradient importance", heads, "importance", value_label="|∂ loss / ∂ gate|")
    ]
    columns = ("importance", "low", "high", "delta", "delta_low", "delta_high")
    percent = columns[3:]
    if is_measured(rows):
        title = f"What disabling each head changes: {heads[0]['metric']}"
        shown.append(
            head_map(title, heads, "delta", value_label="change", diverging=True, percent=True)
        )
    layers = of_unit(rows, "layer")
    shown.append(
        table_of("Layers: importance, and what removing each changes", layers,
                 ("layer", *columns), percent=percent)
    )  # fmt: skip
    first = sorted(heads, key=lambda row: -row["importance"])[:SHOWN_HEADS]
    shown.append(
        table_of("The heads with the largest gradients", first, ("layer", "head", *columns),
                 percent=percent)
    )  # fmt: skip
    return (*shown, *_rollouts(rows))


def _rollouts(rows: TidyRows) -> list[Table]:
    tokens = [row for row in rows if row["unit"] == "token"]
    return [
        table_of(
            f"Text {text + 1}, {NOT_AN_IMPORTANCE}",
            [row for row in tokens if row["text"] == text],
            ("token", "rollout"),
            percent=("rollout",),
        )
        for text in dict.fromkeys(row["text"] for row in tokens)
    ]


def of_unit(rows: TidyRows, unit: str) -> list[TidyRow]:
    """The rows of all heads, or of all layers."""
    return [row for row in rows if row["unit"] == unit]


def is_measured(rows: TidyRows) -> bool:
    """Whether heads were disabled and layers removed, too."""
    return any(row["delta"] is not None for row in of_unit(rows, "head"))


def agreement(rows: TidyRows, unit: str) -> Interval | None:
    """The rank correlation of importance with the measured loss of score, over heads or layers."""
    units = [row for row in of_unit(rows, unit) if row["delta"] is not None]
    return rank_agreement([row["importance"] for row in units], [-row["delta"] for row in units])


def rank_agreement(scores: Sequence[float], losses: Sequence[float]) -> Interval | None:
    """The rank correlation of layers' or heads' scores with their losses; None for too few."""
    return None if len(scores) < LEAST_UNITS else bootstrap(spearman(scores, losses))


def finding(rows: TidyRows) -> str:
    """What matters most by gradient, what that costs when it is disabled, and how ranks agree."""
    parts = [_agrees(rows), _most(rows, "head"), _most(rows, "layer")]
    if not is_measured(rows):
        parts.append("Nothing was disabled: a gradient alone doesn't say what a cut costs.")
    return " ".join(part for part in parts if part)


def _most(rows: TidyRows, unit: str) -> str:
    """The head or layer with the largest gradient, and the measured change without it."""
    most = max(of_unit(rows, unit), key=lambda row: row["importance"])
    name = name_of(most) if unit == "head" else most["layer"]
    words = f"{unit.capitalize()} {name} has the largest gradient: {most['importance']:.3g}"
    if most["low"] is not None:
        words += f" ({most['low']:.3g} to {most['high']:.3g}, {counted(most['n'], 'text')})"
    if most["delta"] is None:
        return f"{words}."
    done = "disabling" if unit == "head" else "removing"
    cost = change(most["delta"], most["delta_low"], most["delta_high"])
    return f"{words}; {done} it changes the {most['metric']} by {cost}."


def _agrees(rows: TidyRows) -> str:
    """How far gradients rank heads and layers as measuring does."""
    told = []
    for unit in ("head", "layer"):
        found = agreement(rows, unit)
        if found is not None:
            told.append(
                f"{correlation(found.value, found.low, found.high)} over {counted(found.n, unit)}"
            )
    if not told:
        return ""
    return f"Gradients and the measured loss rank alike by Spearman {', '.join(told)}."


def summary(rows: TidyRows) -> dict[str, Any]:
    """Heads and layers by importance, most first, and the rank correlations."""
    ranked = {
        unit: sorted(of_unit(rows, unit), key=lambda row: -row["importance"])
        for unit in ("head", "layer")
    }
    found = {unit: agreement(rows, unit) for unit in ranked}
    return {
        "heads_by_importance": [name_of(row) for row in ranked["head"]],
        "layers_by_importance": [row["layer"] for row in ranked["layer"]],
        "spearman": {unit: None if one is None else one.value for unit, one in found.items()},
    }
