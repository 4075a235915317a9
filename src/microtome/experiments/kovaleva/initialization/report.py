"""Rows of initialization as tables and words."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

from microtome.experiments.kit.learning import (
    CONSTANT,
    constant_of,
    n_one_answer,
    no_better,
    not_learnt,
)
from microtome.experiments.kit.seed_curves import said
from microtome.experiments.kit.wording import counted, percent
from microtome.statistics import SeedDifference, compare_seeds
from microtome.tasks.catalogue import all_tasks
from microtome.views import Cell, Table, TidyRow, TidyRows, View

STARTS = ("pretrained", "random", "finetuned")
REFERENCES = ("probe", "majority")


def metrics_of(rows: TidyRows) -> list[str]:
    """The metrics, the task's primary one first."""
    names = list(dict.fromkeys(row["metric"] for row in rows))
    primary = next((task.primary for task in all_tasks() if task.name == rows[0].get("task")), None)
    return sorted(names, key=lambda name: primary is None or name != primary)


def runs_of(rows: TidyRows, start: str, metric: str | None = None) -> list[TidyRow]:
    """The runs from one start, seed by seed; by the task's primary metric unless named."""
    metric = metric or metrics_of(rows)[0]
    return [row for row in rows if (row["start"], row["metric"]) == (start, metric)]


def values_of(rows: TidyRows, start: str, metric: str | None = None) -> list[float]:
    """The scores of one start, seed by seed; the task's primary metric unless named."""
    return [row["value"] for row in runs_of(rows, start, metric)]


def difference(rows: TidyRows, start: str, other: str) -> SeedDifference:
    """``start`` minus ``other`` in the primary metric, seeds against seeds."""
    return compare_seeds(values_of(rows, start), values_of(rows, other))


def views(rows: TidyRows) -> tuple[View, ...]:
    """A table per metric: mean, spread and range of every start, and one constant answer."""
    columns = ("start", "runs", "mean", "sd", "lowest", "highest", "one_answer")
    tables = []
    for metric in metrics_of(rows):
        cells: list[tuple[Cell, ...]] = []
        for start in (*STARTS, *REFERENCES):
            if runs := runs_of(rows, start, metric):
                values = [run["value"] for run in runs]
                spread = stdev(values) if len(values) > 1 else None
                ends = (min(values), max(values))
                cells.append((start, len(runs), fmean(values), spread, *ends, n_one_answer(runs)))
        constant = constant_of(row for row in rows if row["metric"] == metric)
        if constant is not None and not runs_of(rows, "majority", metric):  # of questions
            cells.append((CONSTANT, None, constant, *(None,) * 4))
        tables.append(Table(f"{metric} from every start", columns, tuple(cells), columns[2:6]))
    return tuple(tables)


def finding(rows: TidyRows) -> str:
    """What the pre-trained start is worth, and the scores without fine-tuning."""
    tuned, random, untrained = (
        values_of(rows, start) for start in ("finetuned", "random", "pretrained")
    )
    probe, constant = (values_of(rows, reference) for reference in REFERENCES)
    words = not_learnt(runs_of(rows, "finetuned"), "The fine-tuned model") or (
        f"Pre-trained against random start, {metrics_of(rows)[0]} on"
        f" {rows[0].get('task') or 'the task'}: {said(difference(rows, 'finetuned', 'random'))},"
        f" {percent(fmean(tuned))} against {percent(fmean(random))} after fine-tuning"
        f" ({counted(len(random), 'seed')}{no_better(runs_of(rows, 'random'))})."
    )
    words += (
        f" Without fine-tuning it is"
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
