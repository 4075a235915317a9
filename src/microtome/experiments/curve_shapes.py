"""The shape of a curve of fine-tuned arms: its concavity, from the arms' stored answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from microtome.experiments.experiment import Row, counted, points
from microtome.experiments.finetuning import training_rows
from microtome.experiments.subject import MODEL, Subject
from microtome.experiments.training_sizes import size_name
from microtome.runs import Context, Result, Trial

CONCAVITY = "concavity"  # the metric of rows that tell about a whole curve
FEWEST_COUNTS = 3  # a curve of two points is its own chord


def shape_trial(
    subject: Subject, experiment: str, arms: list[Trial], about: Mapping[str, Any]
) -> Trial:
    """The trial that measures one curve's concavity; ``about`` stands in its row."""
    label = f"concavity, seed {about['seed']}, {size_name(about['fraction'])}"
    request = {"about": dict(about)}
    return subject.trial(
        "curve_shapes:measure", experiment, request, needs=tuple(arms), label=label, trains=True
    )


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """The areas between a curve and its chord, with intervals over the measured rows."""
    from pathlib import Path

    from microtome.experiments.comparing import as_metric
    from microtome.experiments.concavity import areas
    from microtome.experiments.predictions import Judge, stored_logits

    _, dev = training_rows(request, context)
    judge = Judge.of(dev, Path(context.where[MODEL]))
    arms = sorted(context.needs.values(), key=lambda need: need.rows[0]["reinitialized"])
    first = arms[0].rows[0]
    counts = [arm.rows[0]["reinitialized"] for arm in arms]
    metrics = [
        as_metric(judge.outcomes(stored_logits(arm.arrays))[judge.metric])
        for arm in arms
        if arm.arrays is not None
    ]
    absolute, signed = areas(counts, metrics, clusters=dev.clusters)
    row = {
        **request["about"], "reinitialized": None, "layer": None, "layers": first["layers"],
        "parts": first["parts"], "primary": judge.metric, "edit": None, "metric": CONCAVITY,
        "value": absolute.value, "low": absolute.low, "high": absolute.high, "n": absolute.n,
        "signed": signed.value, "signed_low": signed.low, "signed_high": signed.high,
        "n_counts": len(counts),
    }  # fmt: skip
    return Result(rows=[row], summary={CONCAVITY: signed.value})


def shapes(rows: Iterable[Row], fraction: float) -> list[Row]:
    """The concavity of one training size, a row per seed; of the fullest curve, if it grew."""
    found: dict[int, Row] = {}
    for row in rows:
        if row["metric"] == CONCAVITY and row["fraction"] == fraction:
            older = found.get(row["seed"])
            if older is None or row["n_counts"] > older["n_counts"]:
                found[row["seed"]] = row
    return list(found.values())


def bend(found: list[Row]) -> str:
    """The concavity in words: over seeds from three on, else over the rows of each run."""
    from microtome.statistics import over_seeds

    if not found:
        return ""
    mean = over_seeds([row["signed"] for row in found])
    if mean.interval is not None:
        low, high, of = mean.interval.low, mean.interval.high, f"over {mean.n_seeds} seeds"
    else:
        low = min(row["signed_low"] for row in found)
        high = max(row["signed_high"] for row in found)
        of = f"over the measured rows of {counted(len(found), 'seed')}, not over seeds"
    form = "concave" if low > 0 else "convex" if high < 0 else "not told from a straight line"
    return (
        f" The curve lies {points(mean.value)} points from its chord on average"
        f" ({points(low)} to {points(high)}, {of}): {form}."
    )
