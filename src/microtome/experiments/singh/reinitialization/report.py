"""Rows of re-initialisation as curves, a table of their shapes, and words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from microtome.experiments.kit.learning import (
    constant_line,
    no_better,
    not_learnt,
    surely_learnt,
)
from microtome.experiments.kit.seed_curves import (
    TOP_AXIS,
    by_place,
    curve_of,
    difference,
    mean_of,
    said,
    size_name,
    size_with_rows,
    sizes,
)
from microtome.experiments.kit.wording import change, counted, layers_named, percent
from microtome.experiments.singh.reinitialization.plan import CONCAVITY
from microtome.statistics import over_seeds
from microtome.views import Curve, Series, TidyRow, TidyRows, View, table_of


def scores(rows: Iterable[TidyRow], fraction: float) -> list[TidyRow]:
    """The primary scores of one training size."""
    return [row for row in rows if row["metric"] == row["primary"] and row["fraction"] == fraction]


def concavities(rows: Iterable[TidyRow], fraction: float) -> list[TidyRow]:
    """The concavity of one training size, a row per seed.

    A run that was asked for more counts has rows of both curves: that of the most counts is taken.
    """
    by_seed: dict[int, TidyRow] = {}
    for row in rows:
        if row["metric"] == CONCAVITY and row["fraction"] == fraction:
            older = by_seed.get(row["seed"])
            if older is None or row["n_counts"] > older["n_counts"]:
                by_seed[row["seed"]] = row
    return list(by_seed.values())


def last_layers(counts: Iterable[int], n_layers: int) -> int | None:
    """The count that stands for "the last layers": two, or the fewest there are up to a third."""
    few = [count for count in counts if 0 < count <= max(2, n_layers // 3)]
    return 2 if 2 in few else min(few, default=None)


def views(rows: TidyRows) -> tuple[View, ...]:
    """The curve of every size, and the shapes of the curves."""
    side, metric = rows[0]["side"], rows[0]["primary"]
    if side == "each":
        return (_single_layers(rows, metric),)
    lines = [
        curve_of(scores(rows, fraction), "reinitialized", f"re-initialised, {size_name(fraction)}")
        for fraction in sizes(rows)
    ]
    primary = [row for fraction in sizes(rows) for row in scores(rows, fraction)]
    lines += constant_line(primary, (float(row["reinitialized"]) for row in primary))
    axis = TOP_AXIS if side == "top" else "bottom layers without their pre-training"
    curve = Curve(
        f"Layers re-initialised from the {side}, then all fine-tuned", axis, metric,
        tuple(line for line in lines if line is not None), says=what_it_costs(rows),
    )  # fmt: skip
    shapes = [row for fraction in sizes(rows) for row in concavities(rows, fraction)]
    if not shapes:
        return (curve,)
    ends = ("value", "low", "high", "signed", "signed_low", "signed_high")
    columns = ("fraction", "seed", *ends, "n_counts")
    title = "Area between curve and chord (points; signed: above the chord is positive)"
    return curve, table_of(title, shapes, columns, percent=ends)


def _single_layers(rows: TidyRows, metric: str) -> Curve:
    """Score against the one layer that was drawn afresh; the untouched model as the control."""
    lines: list[Series] = []
    for fraction in sizes(rows):
        of_size = scores(rows, fraction)
        line = curve_of(of_size, "layer", f"one layer re-initialised, {size_name(fraction)}")
        untouched = [row for row in of_size if row["reinitialized"] == 0]
        if line is not None and untouched:
            flat = (mean_of(untouched),) * len(line.x)
            lines += [line, Series(f"none, {size_name(fraction)}", line.x, flat, is_control=True)]
    lines += constant_line(scores(rows, sizes(rows)[0]), (x for line in lines for x in line.x))
    title = "One layer re-initialised, then all fine-tuned"
    return Curve(title, "layer", metric, tuple(lines), says=what_it_costs(rows))


def what_it_costs(rows: TidyRows, fraction: float | None = None) -> str:
    """What is sure of one training size, the largest unless named, over seeds; empty if nothing."""
    of_size = scores(rows, fraction or sizes(rows)[0])
    column = "layer" if rows[0]["side"] == "each" else "reinitialized"
    base = [row for row in of_size if row["reinitialized"] == 0]
    if not base or not_learnt(base, "") or not surely_learnt(base):
        return ""
    arms = by_place([row for row in of_size if row["reinitialized"]], column)
    changes = {place: difference(runs, base).interval for place, runs in arms.items()}
    known = {place: ends for place, ends in changes.items() if ends is not None}
    lost = [place for place, ends in known.items() if ends.high < 0]
    if not lost:
        return ""
    if column == "layer":
        return f"{layers_named(lost)} can't start from random numbers"
    few, which = min(lost), "last" if rows[0]["side"] == "top" else "first"
    layers = f"{which} {few} layers" if few > 1 else f"{which} layer"
    return f"Pre-training matters: without it in the {layers} the score falls"


def finding(rows: TidyRows) -> str:
    """What pre-training is worth, layer by layer, in words computed from rows."""
    remarks: set[str] = set()  # why seeds don't decide is said once
    of_size = _of_single_layers if rows[0]["side"] == "each" else _of_curve
    return " ".join(of_size(rows, fraction, remarks) for fraction in sizes(rows))


def _of_curve(rows: TidyRows, fraction: float, remarks: set[str]) -> str:
    of_size = scores(rows, fraction)
    about, curve = of_size[0], by_place(of_size, "reinitialized")
    first, last = min(curve), max(curve)
    start = f"With {size_with_rows(fraction, about['n_train'])}"
    if first == last:
        return (
            f"{start} the {about['primary']} is {percent(mean_of(curve[last]))} with"
            f" {counted(last, 'layer')} re-initialised{no_better(curve[last])}."
        )
    if why := not_learnt(curve[first], f"{start} the model"):
        return why
    since = f" (with {counted(first, 'layer')} re-initialised)" if first else ""
    text = (
        f"{start}, re-initialising {last} of {about['layers']} layers takes the"
        f" {about['primary']} from {percent(mean_of(curve[first]))}{since} to"
        f" {percent(mean_of(curve[last]))}: {said(difference(curve[last], curve[first]), remarks)}"
        f"{no_better(curve[last])}."
    )
    few = last_layers(curve, about["layers"])
    if few is not None and first == 0 and few != last:
        cost = said(difference(curve[few], curve[0]), remarks)
        text += f" The {few} {about['side']} layers alone change it by {cost}."
    return text + _shape(concavities(rows, fraction))


def _shape(shapes: TidyRows) -> str:
    """The concavity in words: over seeds from three on, else over the rows of each run."""
    if not shapes:
        return ""
    mean = over_seeds([row["signed"] for row in shapes])
    if mean.interval is not None:
        low, high, over = mean.interval.low, mean.interval.high, f"over {mean.n_seeds} seeds"
    else:
        low = min(row["signed_low"] for row in shapes)
        high = max(row["signed_high"] for row in shapes)
        over = f"over the measured rows of {counted(len(shapes), 'seed')}, not over seeds"
    straight = "indistinguishable from a straight line"
    form = "concave" if low > 0 else "convex" if high < 0 else straight
    return (
        f" The curve is {form}: {change(mean.value, low, high)} from its chord on average, {over}."
    )


def _of_single_layers(rows: TidyRows, fraction: float, remarks: set[str]) -> str:
    of_size = scores(rows, fraction)
    untouched = [row for row in of_size if row["reinitialized"] == 0]
    by_layer = by_place(of_size, "layer")
    start = f"With {size_with_rows(fraction, of_size[0]['n_train'])} the"
    if why := not_learnt(untouched, f"{start} model"):
        return why
    worst = min(by_layer, key=lambda layer: mean_of(by_layer[layer]))
    return (
        f"{start} {of_size[0]['primary']} is"
        f" lowest with layer {worst} re-initialised: {percent(mean_of(by_layer[worst]))},"
        f" {said(difference(by_layer[worst], untouched), remarks)} compared with none"
        f"{no_better(by_layer[worst])}."
    )


def summary(rows: TidyRows) -> dict[str, Any]:
    """The ends of each curve and its signed area, by training size."""
    return {f"{fraction:g}": _summary_of(rows, fraction) for fraction in sizes(rows)}


def _summary_of(rows: TidyRows, fraction: float) -> Mapping[str, float | None]:
    curve = by_place(scores(rows, fraction), "reinitialized")
    areas = [row["signed"] for row in concavities(rows, fraction)]
    return {
        "first": mean_of(curve[min(curve)]),
        "last": mean_of(curve[max(curve)]),
        "signed_area": sum(areas) / len(areas) if areas else None,
    }
