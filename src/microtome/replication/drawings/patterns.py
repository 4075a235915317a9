"""The exhibits of Kovaleva et al. on the patterns of attention maps."""

from __future__ import annotations

from dataclasses import replace

from microtome.experiments.kit.head_tables import name_of as head_name
from microtome.experiments.kovaleva.attention_patterns.report import (
    SHORT,
    example_maps,
    of_all_maps,
    which_prevails,
)
from microtome.papers.exhibit import Exhibit
from microtome.replication.drawings.titles import joint
from microtome.replication.measured import Measured, name_of
from microtome.views import Bars, BarSeries, Cell, Table, View

NONE = {"share": None}  # single texts have no blocks


def typical_heads(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """For each pattern, the head that has it most often, how often, and a map of it."""
    lines: list[tuple[Cell, ...]] = []
    maps: list[View] = []
    for model, task, rows in measured.pairs("attention-patterns"):
        maps += [
            replace(view, title=f"{view.title}: {name_of(model)} on {task}")
            for view in example_maps(rows)
        ]
        for pattern in SHORT:
            heads = [r for r in rows if r["head"] is not None and r["pattern"] == pattern]
            if any(row["share"] for row in heads):
                most = max(heads, key=lambda row: row["share"])
                ends = (most["low"], most["high"])
                lines.append((name_of(model), task, pattern, head_name(most), most["share"], *ends))
    columns = ("model", "task", "pattern", "head_name", "share", "low", "high")
    table = Table(exhibit.title, columns, tuple(lines), percent=("share", "low", "high"))
    return (*maps, table)


def shares_of_patterns(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """Stacked bars: a bar for each task, a picture for each model."""
    views: list[View] = []
    for model in measured.models:
        by_task = {t: rows for own, t, rows in measured.pairs("attention-patterns") if own == model}
        shares = {task: of_all_maps(rows) for task, rows in by_task.items()}
        if shares:
            series = tuple(
                BarSeries(name, tuple(own.get(name, NONE)["share"] for own in shares.values()))
                for name in SHORT
                if any(name in own for own in shares.values())
            )
            title = f"{exhibit.title}: {name_of(model)}"
            said = joint(
                {
                    task: ""
                    if measured.not_learnt("attention-patterns", model, task)
                    else which_prevails(rows)
                    for task, rows in by_task.items()
                }
            )
            axes = ("task", "share of maps")
            views.append(Bars(title, *axes, tuple(shares), series, stacked=True, says=said))
    return tuple(views)
