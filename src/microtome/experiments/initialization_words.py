"""Rows of initialization as tables and words."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from microtome.experiments.experiment import Rows, counted, percent
from microtome.experiments.seed_curves import said
from microtome.experiments.verdicts import above, judged, verdict
from microtome.views import Cell, Table, View

if TYPE_CHECKING:
    from microtome.statistics import SeedDifference

STARTS = ("pretrained", "random", "finetuned")
BESIDE = ("probe", "majority")
BELOW_IN_THE_PAPER = ("stsb", "qnli")


def values_of(rows: Rows, start: str, metric: str) -> list[float]:
    """The scores of one start, seed by seed."""
    return [r["value"] for r in rows if (r["start"], r["metric"]) == (start, metric)]


def metrics_of(rows: Rows) -> list[str]:
    """The metrics, the task's primary one first."""
    from microtome.tasks.catalogue import all_tasks

    names = list(dict.fromkeys(row["metric"] for row in rows))
    task = next((one for one in all_tasks() if one.name == rows[0].get("task")), None)
    return sorted(names, key=lambda name: task is None or name != task.primary)


def views(rows: Rows) -> tuple[View, ...]:
    """A table per metric: mean, spread and range of every start."""
    columns = ("start", "runs", "mean", "sd", "lowest", "highest")
    tables = []
    for metric in metrics_of(rows):
        cells: list[tuple[Cell, ...]] = []
        for start in (*STARTS, *BESIDE):
            if values := values_of(rows, start, metric):
                spread = stdev(values) if len(values) > 1 else None
                cells.append((start, len(values), fmean(values), spread, min(values), max(values)))
        tables.append(Table(f"{metric} from every start", columns, tuple(cells), columns[2:]))
    return tuple(tables)


def finding(rows: Rows) -> str:
    """The three starts in one sentence each, and what their differences are worth."""
    metric = metrics_of(rows)[0]
    shown = {start: values_of(rows, start, metric) for start in (*STARTS, *BESIDE)}
    untrained = shown["pretrained"]
    words = (
        f"{metric} on {rows[0].get('task') or 'the task'}: fine-tuned from pre-trained weights"
        f" {percent(fmean(shown['finetuned']))}, from random weights"
        f" {percent(fmean(shown['random']))} ({counted(len(shown['random']), 'seed')});"
        f" without fine-tuning {percent(fmean(untrained))} on average over"
        f" {counted(len(untrained), 'untrained head')}"
        f" ({percent(min(untrained))} to {percent(max(untrained))})."
    )
    if shown["probe"]:
        words += (
            f" A probe on the frozen model reaches {percent(shown['probe'][0])}, the answer that"
            f" reads nothing {percent(shown['majority'][0])}."
        )
    return (
        f"{words} Pre-trained against random start: {said(_compared(rows, 'finetuned', 'random'))}."
    )


def _compared(rows: Rows, start: str, other: str) -> SeedDifference:
    from microtome.statistics import compare_seeds

    metric = metrics_of(rows)[0]
    return compare_seeds(values_of(rows, start, metric), values_of(rows, other, metric))


def summary(rows: Rows) -> dict[str, Any]:
    """The mean of every start."""
    metric = metrics_of(rows)[0]
    found = {start: values_of(rows, start, metric) for start in (*STARTS, *BESIDE)}
    means = {start: fmean(values) for start, values in found.items() if values}
    return {
        "metric": metric,
        **means,
        "pretrained_sd": stdev(found["pretrained"]) if len(found["pretrained"]) > 1 else None,
    }


def measured(rows: Rows) -> dict[str, str]:
    """The two claims, on this task."""
    gain = _compared(rows, "finetuned", "pretrained")
    idle = _reads_nothing(rows)
    numbers = f"{said(gain)} on this task against untrained heads{idle}"
    random = _compared(rows, "random", "pretrained")
    is_above = above(random, 0.0)
    is_below = None if is_above is None else not is_above
    return {
        "gain": f"{verdict(None if idle else above(gain, 0.0))}: {numbers}",
        "random": judged(is_below, said(random), rows, BELOW_IN_THE_PAPER),
    }


def _reads_nothing(rows: Rows) -> str:
    """Words for a fine-tuning that isn't told from the commonest answer, over its seeds."""
    from microtome.statistics import over_seeds

    metric = metrics_of(rows)[0]
    tuned, common = (values_of(rows, start, metric) for start in ("finetuned", "majority"))
    if not common:
        return ""
    above = over_seeds([value - common[0] for value in tuned])
    if (above.value if above.interval is None else above.interval.low) > 0:
        return ""
    words = "is as good" if above.value <= 0 else "isn't told from it"
    return f", but the answer that reads nothing {words} ({percent(common[0])})"
