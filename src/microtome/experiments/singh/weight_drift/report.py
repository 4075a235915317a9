"""Rows of weight-drift as curves, a map of parts, and words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from microtome.experiments.kit.seed_curves import by_seed, size_name, sizes
from microtome.experiments.kit.wording import counted
from microtome.experiments.singh.weight_drift.plan import PAPERS_PART, PARTS
from microtome.statistics import over_seeds, spearman, value_of
from microtome.views import Curve, HeatMap, Series, TidyRows, View

FEWEST_LAYERS = 3  # that a trend needs
GROWS = 0.5  # "grows with depth": the least rank correlation of layer and distance
MEASURES = {
    "distance": "Frobenius distance",
    "relative": "distance relative to the norm of the base",
    "per_parameter": "root mean square change of a weight",
}


def sizes_or_base(rows: TidyRows) -> list[float | None]:
    """The training sizes among rows; None for a comparison with a base, where none is known."""
    return [*sizes(rows)] or [None]


def drift(
    rows: TidyRows, fraction: float | None, part: str | None = None, measure: str = "distance"
) -> dict[int, float]:
    """Layer → mean over seeds, of one part (the shown one unless named) and training size."""
    by_layer = _by_layer(rows, fraction, part or shown_part(rows), measure)
    return {layer: sum(values) / len(values) for layer, values in by_layer.items()}


def _by_layer(
    rows: TidyRows, fraction: float | None, part: str, measure: str
) -> dict[int, list[float]]:
    """Layer → a value per seed."""
    by_layer: dict[int, dict[Any, float]] = {}
    for row in rows:
        if row["part"] == part and row["fraction"] == fraction and row[measure] is not None:
            by_layer.setdefault(row["layer"], {})[row["seed"]] = row[measure]
    return {layer: list(by_seed.values()) for layer, by_seed in sorted(by_layer.items())}


def shown_part(rows: TidyRows) -> str:
    """The paper's part where it was measured, else the first."""
    measured = {row["part"] for row in rows}
    if PAPERS_PART in measured:
        return PAPERS_PART
    return next(part for part in PARTS if part in measured)


def rank_correlation(curve: Mapping[int, float]) -> float:
    """Spearman's, of layer and distance; 0 where no layer differs from another."""
    distances = np.array(list(curve.values()))
    return float(value_of(spearman(np.array(list(curve), dtype=float), distances)))


def steepness(curve: Mapping[int, float]) -> float:
    """The least-squares slope: distance per layer."""
    return float(np.polyfit(list(curve), list(curve.values()), 1)[0])


def views(rows: TidyRows) -> tuple[View, ...]:
    """The paper's picture in three measures; with more parts, a map of them."""
    shown: list[View] = [_curve(rows, measure, label) for measure, label in MEASURES.items()]
    if len({row["part"] for row in rows}) > 1:
        shown.append(_map(rows))
    return tuple(shown)


def _curve(rows: TidyRows, measure: str, label: str) -> Curve:
    lines = []
    for size in sizes_or_base(rows):
        curve = drift(rows, size, measure=measure)
        ends = _ends(rows, size, measure)
        lines.append(
            Series(
                "from the base" if size is None else size_name(size),
                tuple(map(float, curve)), tuple(curve.values()),
                tuple(low for low, _ in ends), tuple(high for _, high in ends),
            )
        )  # fmt: skip
    title = f"Drift of the {shown_part(rows)} projection: {label}"
    said = how_it_grows(rows) if measure == "distance" else ""
    return Curve(title, "layer", label, tuple(lines), percent=False, says=said)


def trends(rows: TidyRows) -> list[float]:
    """Each seed's rank correlation of layer and distance, with the most training rows."""
    runs = by_seed(rows).values()
    return [rank_correlation(drift(own, sizes_or_base(own)[0])) for own in runs]


def how_it_grows(rows: TidyRows) -> str:
    """Whether deeper layers moved further, or less far, in every seed; empty where neither."""
    if len(drift(rows, sizes_or_base(rows)[0])) < FEWEST_LAYERS:
        return ""
    found = trends(rows)
    if min(found) >= GROWS:
        return "The deeper the layer, the further its weights moved"
    if max(found) <= -GROWS:
        return "The deeper the layer, the less its weights moved"
    return ""


def _ends(
    rows: TidyRows, size: float | None, measure: str
) -> list[tuple[float | None, float | None]]:
    """A t-interval over seeds at every layer, from three seeds on; a distance is never below 0."""
    by_layer = _by_layer(rows, size, shown_part(rows), measure)
    intervals = [over_seeds(values).interval for values in by_layer.values()]
    return [(None, None) if each is None else (max(0.0, each.low), each.high) for each in intervals]


def _map(rows: TidyRows) -> HeatMap:
    size = sizes_or_base(rows)[0]
    parts = [part for part in PARTS if any(row["part"] == part for row in rows)]
    columns = [drift(rows, size, part, "per_parameter") for part in parts]
    layers = sorted(columns[0])
    return HeatMap(
        title="Root mean square change of a weight, by layer and part",
        row_label="layer", column_label="part",
        rows=tuple(map(str, layers)), columns=tuple(parts),
        values=tuple(tuple(column.get(layer) for column in columns) for layer in layers),
        value_label=MEASURES["per_parameter"], percent=False,
    )  # fmt: skip


def finding(rows: TidyRows) -> str:
    """How far the weights went, and where most, in words computed from rows."""
    sentences = [_of_size(rows, size) for size in sizes_or_base(rows)]
    if len(sentences) > 1:
        matched = any(row["match_steps"] for row in rows)
        sentences.append(
            "Every size had as many updates."
            if matched
            else "More data also meant more updates, and a distance grows with updates: see"
            " --match-steps."
        )
    return " ".join(sentences)


def _of_size(rows: TidyRows, size: float | None) -> str:
    curve, relative = drift(rows, size), drift(rows, size, measure="relative")
    most, least = max(curve, key=curve.__getitem__), min(curve, key=curve.__getitem__)
    projection = f"{'The' if size is None else f'With {size_name(size)}, the'} {shown_part(rows)}"
    if not curve[most]:
        return f"{projection} projection is the same as the base's in every layer."
    text = (
        f"{projection} projection went furthest in layer {most}: {curve[most]:.3g}"
        f" ({100 * relative.get(most, 0.0):.2g} % of its norm)"
    )
    if len(curve) < FEWEST_LAYERS:
        return f"{text}. {counted(len(curve), 'layer').capitalize()} measured: too few for a trend."
    rho = f"{rank_correlation(curve):+.2f}".replace("-", "−")
    return (
        f"{text}, least far in layer {least}: {curve[least]:.3g}. Rank correlation of layer and"
        f" distance: {rho}."
    )


def summary(rows: TidyRows) -> dict[str, Any]:
    """Mean distance and trend of every size."""
    return {
        "base" if size is None else f"{size:g}": _summary_of(drift(rows, size))
        for size in sizes_or_base(rows)
    }


def _summary_of(curve: Mapping[int, float]) -> dict[str, float | None]:
    return {
        "mean": sum(curve.values()) / len(curve),
        "rank_correlation": rank_correlation(curve) if len(curve) >= FEWEST_LAYERS else None,
    }
