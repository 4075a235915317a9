"""Rows of initialization as tables and words."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

from microtome.experiments.kit.seed_curves import said
from microtome.experiments.kit.wording import counted, percent
from microtome.statistics import SeedDifference, compare_seeds
from microtome.tasks.catalogue import all_tasks
from microtome.views import Cell, Table, TidyRows, View

STARTS = ("pretrained", "random", "finetuned")
REFERENCES = ("probe", "majority")


def metrics_of(rows: TidyRows) -> list[str]:
    """The metrics, the task's primary one first."""
    names = list(dict.fromkeys(row["metric"] for row in rows))
    primary = next((task.primary for task in all_tasks() if task.name == rows[0].get("task")), None)
    return sorted(names, key=lambda name: primary is None or name != primary)


def values_of(rows: TidyRows, start: str, metric: str | None = None) -> list[float]:
    """The scores of one start, seed by seed; the task's primary metric unless named."""
    metric = metric or metrics_of(rows)[0]
    return [row["value"] for row in rows if (row["start"], row["metric"]) == (start, metric)]


def difference(rows: TidyRows, start: str, other: str) -> SeedDifference:
    """``start`` minus ``other`` in the primary metric, seeds against seeds."""
    return compare_seeds(values_of(rows, start), values_of(rows, other))


def views(rows: TidyRows) -> tuple[View, ...]:
    """A table per metric: mean, spread and range of every start."""
    columns = ("start", "runs", "mean", "sd", "lowest", "highest")
    tables = []
    for metric in metrics_of(rows):
        cells: list[tuple[Cell, ...]] = []
        for start in (*STARTS, *REFERENCES):
            if values := values_of(rows, start, metric):
                spread = stdev(values) if len(values) > 1 else None
                cells.append((start, len(values), fmean(values), spread, min(values), max(values)))
        tables.append(Table(f"{metric} from every start", columns, tuple(cells), columns[2:]))
    return tuple(tables)


def finding(rows: TidyRows) -> str:
    """What the pre-trained start is worth, and the scores without fine-tuning."""
    tuned, random, untrained = (
        values_of(rows, start) for start in ("finetuned", "random", "pretrained")
    )
    probe, constant = (values_of(rows, reference) for reference in REFERENCES)
    words = (
        f"Pre-trained against random start, {metrics_of(rows)[0]} on"
        f" {rows[0].get('task') or 'the task'}: {said(difference(rows, 'finetuned', 'random'))},"
        f" {percent(fmean(tuned))} against {percent(fmean(random))} after fine-tuning"
        f" ({counted(len(random), 'seed')}). Without fine-tuning it is"
        f" {percent(fmean(untrained))} on average over {counted(len(untrained), 'untrained head')}"
        f" ({percent(min(untrained))} to {percent(max(untrained))})."
    )
    if not probe:
        return words
    return (
        f"{words} A probe on the frozen model reaches {percent(probe[0])}, a constant answer"
        f" {percent(constant[0])}."
    )


def summary(rows: TidyRows) -> dict[str, Any]:
    """The mean of every start."""
    by_start = {start: values_of(rows, start) for start in (*STARTS, *REFERENCES)}
    untrained = by_start["pretrained"]
    return {
        "metric": metrics_of(rows)[0],
        **{start: fmean(values) for start, values in by_start.items() if values},
        "pretrained_sd": stdev(untrained) if len(untrained) > 1 else None,
    }
