"""The exhibits of Kao et al. on fine-tuned deeper models: curves and tables by number of layers."""

from __future__ import annotations

from collections.abc import Iterator

from microtome.experiments.kao.duplication.report import what_depth_does
from microtome.experiments.kao.duplication.strategies import BASELINE
from microtome.experiments.kit.seed_curves import by_place, ends_of, mean_of
from microtome.papers.exhibit import Exhibit
from microtome.replication.drawings.titles import joint, panels
from microtome.replication.measured import Measured, name_of
from microtome.views import Cell, Curve, Level, Series, Table, TidyRow, TidyRows, View


def trained(rows: TidyRows, metric: str, strategy: str = "first") -> dict[int, list[TidyRow]]:
    """Number of layers → a row per seed, of one metric; the baseline is among them."""
    own = [
        row
        for row in rows
        if row.get("stage") == "finetuned"
        and row["metric"] == metric
        and row["strategy"] in (BASELINE, strategy)
    ]
    return by_place(own, "layers")


def _curve(name: str, by_layers: dict[int, list[TidyRow]]) -> Series:
    ends = [ends_of(rows) for rows in by_layers.values()]
    return Series(
        name, tuple(map(float, by_layers)), tuple(mean_of(rows) for rows in by_layers.values()),
        tuple(low for low, _ in ends), tuple(high for _, high in ends),
    )  # fmt: skip


def primary_of(rows: TidyRows) -> str:
    """The task's first metric."""
    return str(next(row["primary"] for row in rows if row.get("stage") == "finetuned"))


def score_by_layers(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """One line per model, its baseline dotted."""
    lines, levels, metric, on = [], [], exhibit.metric, ""
    said: dict[str, str] = {}
    for model, task, rows in measured.pairs("duplication"):
        on = task
        metric = exhibit.metric or primary_of(rows)
        by_layers = trained(rows, metric)
        lines.append(_curve(name_of(model), by_layers))
        levels.append(Level(name_of(model), mean_of(by_layers[min(by_layers)])))
        if metric == primary_of(rows):
            drawn = [row for row in rows if row.get("strategy") in (BASELINE, "first")]
            said[name_of(model)] = what_depth_does(drawn)
    if not lines:
        return ()
    title = f"{metric} on {on} by number of layers".replace("_", " ")
    return (
        Curve(title, "layers", metric, tuple(lines), levels=tuple(levels), says=joint(said)),
    )  # fmt: skip


def score_by_strategy(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """One line per way to make a model deeper, for each model; the baseline dotted."""
    views = []
    for model, task, rows in measured.pairs("duplication"):
        metric = primary_of(rows)
        names = [row["strategy"] for row in rows if row.get("stage") == "finetuned"]
        strategies = [name for name in dict.fromkeys(names) if name != BASELINE]
        lines = [_curve(name, trained(rows, metric, name)) for name in strategies]
        base = trained(rows, metric, BASELINE)
        level = Level("not duplicated", mean_of(base[min(base)]))
        title, said = f"{name_of(model)} on {task}", what_depth_does(rows)
        views.append(Curve(title, "layers", metric, tuple(lines), levels=(level,), says=said))
    return panels(exhibit.title, views)


def scores_by_depth(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """A block of lines per model: the baseline, then deeper ones, marked where better or worse."""
    columns = list(_score_columns(measured))
    lines: list[tuple[Cell, ...]] = []
    better: list[tuple[int, int]] = []
    worse: list[tuple[int, int]] = []
    for model in measured.models:
        scores = {
            place: trained(rows, metric)
            for place, (task, metric) in enumerate(columns, 2)
            if (rows := measured.of("duplication", model, task))
        }
        counts = sorted({count for by_layers in scores.values() for count in by_layers})
        for count in counts:
            cells: list[Cell] = [name_of(model), count]
            for place in range(2, len(columns) + 2):
                by_layers = scores.get(place, {})
                score = mean_of(by_layers[count]) if count in by_layers else None
                base = mean_of(by_layers[counts[0]]) if counts[0] in by_layers else None
                if score is not None and base is not None and score != base:
                    (better if score > base else worse).append((len(lines), place))
                cells.append(score)
            lines.append(tuple(cells))
    if not lines:
        return ()
    tasks = [task for task, _ in columns]
    names = tuple(metric for _, metric in columns)
    groups = (("", 2), *((task, tasks.count(task)) for task in dict.fromkeys(tasks)))
    title = f"{exhibit.title} (means over seeds, against each model's first line)"
    return (
        Table(
            title, ("model", "layers", *names), tuple(lines), percent=names, groups=groups,
            better=tuple(better), worse=tuple(worse),
        ),
    )  # fmt: skip


def _score_columns(measured: Measured) -> Iterator[tuple[str, str]]:
    """Task and metric of every column; questions have both of theirs, other tasks their first."""
    for task in measured.tasks:
        found = [rows for model, own, rows in measured.pairs("duplication") if own == task]
        if found:
            metrics = {row["metric"] for row in found[0] if row.get("stage") == "finetuned"}
            both = ("exact_match", "f1")
            shown = both if metrics.issuperset(both) else (primary_of(found[0]),)
            yield from ((task, metric) for metric in shown)
