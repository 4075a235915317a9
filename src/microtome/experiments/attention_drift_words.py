"""Rows of attention-drift as a map, a curve, a table and words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microtome.experiments.experiment import Rows, counted
from microtome.experiments.head_tables import head_map
from microtome.experiments.verdicts import CANT_TELL
from microtome.views import Curve, Series, Table, View, table_of


def views(rows: Rows) -> tuple[View, ...]:
    """Layer by head, the layers as a curve with both floors, and a table of layers."""
    first = _of_first_seed(rows)
    heads = [row for row in first if row["head"] is not None]
    layers = [row for row in first if row["head"] is None]
    x = tuple(float(row["layer"]) for row in layers)

    def line(name: str, column: str) -> Series:
        return Series(name, x, tuple(row[column] for row in layers), is_control=True)

    drift = Series(
        "fine-tuned and pre-trained", x, tuple(row["cosine"] for row in layers),
        tuple(row["low"] for row in layers), tuple(row["high"] for row in layers),
    )  # fmt: skip
    curve = Curve(
        "What fine-tuning left of the attention maps", "layer", "cosine",
        (drift, line("two seeds", "seed_cosine"), line("different heads", "other_heads_cosine")),
        percent=False,
    )  # fmt: skip
    return (
        head_map(
            "Cosine of fine-tuned and pre-trained maps", heads, "cosine", value_label="cosine"
        ),
        curve,
        _layer_table(layers),
    )


def _layer_table(layers: Rows) -> Table:
    floors = ("seed_cosine", "other_heads_cosine", "jensen_shannon")
    columns = ("layer", "cosine", "low", "high", *floors)
    return table_of("Layer by layer", [dict(row) for row in layers], columns)


def _of_first_seed(rows: Rows) -> list[Any]:
    return [row for row in rows if row["seed"] == rows[0]["seed"]]


def finding(rows: Rows) -> str:
    """Where the attention changed, beside what a cosine is without any relation."""
    first = _of_first_seed(rows)
    layers = sorted((r for r in first if r["head"] is None), key=lambda r: r["cosine"])
    heads = [row for row in first if row["head"] is not None]
    most, head = layers[0], min(heads, key=lambda row: row["cosine"])
    words = (
        f"Over {counted(most['n'], 'text')}, layer {most['layer']} changes most: mean cosine"
        f" {_with_ends(most)}; layer {layers[-1]['layer']} least: {_with_ends(layers[-1])}. The"
        f" head that changes most is {head['layer']}.{head['head']}: {_with_ends(head)}."
    )
    if most["other_heads_cosine"] is not None:
        words += f" Different heads of layer {most['layer']}: {most['other_heads_cosine']:.2f}."
    if most["seed_cosine"] is None:
        return f"{words} One fine-tuning only: what the seed alone changes isn't known."
    return f"{words} Two fine-tunings that differ by the seed: {most['seed_cosine']:.2f} there."


def _with_ends(row: Mapping[str, Any]) -> str:
    if row["low"] is None:
        return f"{row['cosine']:.2f}"
    return f"{row['cosine']:.2f} ({row['low']:.2f} to {row['high']:.2f})"


def summary(rows: Rows) -> dict[str, Any]:
    """Layers by how much they changed, most first."""
    layers = [row for row in _of_first_seed(rows) if row["head"] is None]
    ranked = sorted(layers, key=lambda row: row["cosine"])
    return {
        "layers_by_change": [row["layer"] for row in ranked],
        "cosine": {str(row["layer"]): row["cosine"] for row in layers},
    }


def measured(rows: Rows) -> dict[str, str]:
    """Whether the last two layers changed most, in every fine-tuning."""
    seeds = list(dict.fromkeys(row["seed"] for row in rows))
    layers = [[r for r in rows if r["seed"] == s and r["head"] is None] for s in seeds]
    verdicts = {_last_two_change_most(own) for own in layers}
    verdict = verdicts.pop() if len(verdicts) == 1 else "can't tell: fine-tunings disagree"
    ranked = sorted(layers[0], key=lambda row: row["cosine"])[:2]
    shown = " and ".join(f"{row['layer']} ({_with_ends(row)})" for row in ranked)
    shown += f" of {len(layers[0])} change most{'' if len(seeds) > 1 else ', one fine-tuning'}"
    return {"layers": f"{verdict}: layers {shown}"}


def _last_two_change_most(layers: Rows) -> str:
    """By intervals over texts: the last two all below the others, or one of the others below."""
    ordered = sorted(layers, key=lambda row: row["layer"])
    if len(ordered) < 3 or any(row["low"] is None for row in ordered):
        return CANT_TELL
    last, before = ordered[-2:], ordered[:-2]
    if max(row["high"] for row in last) < min(row["low"] for row in before):
        return "holds"
    other = min(row["high"] for row in before) < max(row["low"] for row in last)
    return "doesn't hold" if other else CANT_TELL
