"""Rows of attention-drift as a map, a curve, a table and words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from microtome.experiments.kit.head_tables import head_map, name_of
from microtome.experiments.kit.seed_curves import by_seed
from microtome.experiments.kit.wording import counted, layers_named
from microtome.views import Curve, TidyRow, TidyRows, View, series_of, table_of


def views(rows: TidyRows) -> tuple[View, ...]:
    """Layer by head, the layers as a curve with both floors, and a table of layers."""
    first = of_first_seed(rows)
    heads = [row for row in first if row["head"] is not None]
    layers = whole_layers(first)
    title = "Cosine of fine-tuned and pre-trained maps"
    floors = ("seed_cosine", "other_heads_cosine", "jensen_shannon")
    columns = ("layer", "cosine", "low", "high", *floors)
    return (
        head_map(title, heads, "cosine", value_label="cosine"),
        replace(_curve(layers), says=which_change_most(rows)),
        table_of("Layer by layer", layers, columns),
    )


def _curve(layers: TidyRows) -> Curve:
    series = (
        series_of("fine-tuned and pre-trained", layers, "layer", "cosine", ends=("low", "high")),
        series_of("two seeds", layers, "layer", "seed_cosine", is_control=True),
        series_of("different heads", layers, "layer", "other_heads_cosine", is_control=True),
    )
    title = "What fine-tuning left of the attention maps"
    return Curve(title, "layer", "cosine", series, percent=False)


def which_change_most(rows: TidyRows) -> str:
    """The fewest layers that are sure to have changed more than all others, in every fine-tuning.

    Half of the layers at most; empty where fine-tunings disagree, or nothing is sure.
    """
    found = {_most_changed(own) for own in by_seed(whole_layers(rows)).values()}
    layers = found.pop() if len(found) == 1 else ()
    if not layers:
        return ""
    named = layers_named(layers)
    return f"Attention of {named[0].lower()}{named[1:]} changes most"


def _most_changed(layers: TidyRows) -> tuple[int, ...]:
    if any(row["low"] is None for row in layers):
        return ()
    ordered = sorted(layers, key=lambda row: row["cosine"])
    for n in range(1, len(ordered) // 2 + 1):
        most, others = ordered[:n], ordered[n:]
        if max(row["high"] for row in most) < min(row["low"] for row in others):
            return tuple(sorted(row["layer"] for row in most))
    return ()


def of_first_seed(rows: TidyRows) -> list[TidyRow]:
    """The rows of the first fine-tuning: pictures and words show that one."""
    return [row for row in rows if row["seed"] == rows[0]["seed"]]


def whole_layers(rows: TidyRows) -> list[TidyRow]:
    """The rows that are means over the heads of a layer."""
    return [row for row in rows if row["head"] is None]


def finding(rows: TidyRows) -> str:
    """Where the attention changed, and what a cosine is without any fine-tuning."""
    first = of_first_seed(rows)
    layers = sorted(whole_layers(first), key=lambda row: row["cosine"])
    most, least = layers[0], layers[-1]
    head = min((row for row in first if row["head"] is not None), key=lambda row: row["cosine"])
    return (
        f"Layer {most['layer']} changes most: mean cosine {with_interval(most)} over"
        f" {counted(most['n'], 'text')}; layer {least['layer']} least: {with_interval(least)}."
        f" The head that changes most is {name_of(head)}: {with_interval(head)}."
        f" {_floors(most)}"
    )


def _floors(layer: TidyRow) -> str:
    """What the cosine of a layer is to be compared with."""
    if layer["seed_cosine"] is None:
        seeds = "what the seed alone changes isn't known (one fine-tuning)"
    else:
        seeds = f"two fine-tunings that differ by the seed have {layer['seed_cosine']:.2f} there"
    if layer["other_heads_cosine"] is None:
        return f"For comparison, {seeds}."
    heads = f"different heads of layer {layer['layer']} have {layer['other_heads_cosine']:.2f}"
    return f"For comparison, {heads}; {seeds}."


def with_interval(row: TidyRow) -> str:
    """A cosine with its interval, where it has one to show: 0.95 (0.93 to 0.97)."""
    value = f"{row['cosine']:.2f}"
    ends = [] if row["low"] is None else [f"{row[end]:.2f}" for end in ("low", "high")]
    return f"{value} ({' to '.join(ends)})" if len(set(ends)) == 2 else value


def summary(rows: TidyRows) -> dict[str, Any]:
    """Layers by how much they changed, most first."""
    layers = whole_layers(of_first_seed(rows))
    ranked = sorted(layers, key=lambda row: row["cosine"])
    return {
        "layers_by_change": [row["layer"] for row in ranked],
        "cosine": {str(row["layer"]): row["cosine"] for row in layers},
    }
