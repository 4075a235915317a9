"""Rows of layer-similarity as maps, a curve, a table and words."""

from __future__ import annotations

from typing import Any

from microtome.experiments.kit.wording import counted
from microtome.values import format_ranges
from microtome.views import Curve, HeatMap, Table, TidyRow, TidyRows, View, series_of


def views(rows: TidyRows) -> tuple[View, ...]:
    """Depth by depth, with the other model's depths, influence by layer, and blocks of layers."""
    curve = Curve(
        "Block influence: how far a layer moves the states", "layer", "1 − cosine",
        (series_of("1 − cosine", layers_of(rows), "layer", "value", ends=("low", "high")),),
        percent=False,
    )  # fmt: skip
    shown: list[View] = [_depth_map(rows)]
    if across := [row for row in rows if row["measure"] == "other_cka"]:
        shown.append(_other_map(across))
    return (*shown, curve, _block_table(rows))


def _depth_map(rows: TidyRows) -> HeatMap:
    """Both halves of the symmetric table, and 1 on its diagonal."""
    pairs = {(row["depth"], row["other_depth"]): row["value"] for row in within(rows)}
    n_depths = 1 + max(place[1] for place in pairs)
    names = tuple(map(str, range(n_depths)))
    values = tuple(
        tuple(1.0 if i == j else pairs[min(i, j), max(i, j)] for j in range(n_depths))
        for i in range(n_depths)
    )
    return HeatMap(
        "Similarity of the states at all depths", "depth", "depth", names, names, values, "CKA",
        percent=False,
    )  # fmt: skip


def _other_map(rows: TidyRows) -> HeatMap:
    """The model's depths as rows, the other model's as columns."""
    pairs = {(row["depth"], row["other_depth"]): row["value"] for row in rows}
    sizes = [1 + max(place[axis] for place in pairs) for axis in (0, 1)]
    lines, columns = (tuple(map(str, range(size))) for size in sizes)
    values = tuple(tuple(pairs[i, j] for j in range(sizes[1])) for i in range(sizes[0]))
    other = rows[0]["other"]
    return HeatMap(
        f"Similarity with {other}", "depth", f"depth of {other}", lines, columns, values, "CKA",
        percent=False,
    )  # fmt: skip


def _block_table(rows: TidyRows) -> Table:
    """For every number of layers, the block that turns the states least."""
    lines = tuple(
        (block["other_depth"] - block["depth"], named(block), block["value"], block["low"],
         block["high"])
        for block in least_blocks(rows)
    )  # fmt: skip
    title = "The block of every length that turns the states least (angle, of a half-turn)"
    return Table(title, ("n_layers", "layers", "angle", "low", "high"), lines)


def within(rows: TidyRows) -> list[TidyRow]:
    """CKA of two depths of the model itself."""
    return [row for row in rows if row["measure"] == "cka"]


def layers_of(rows: TidyRows) -> list[TidyRow]:
    """The rows of block influence, by layer."""
    return [row for row in rows if row["measure"] == "influence"]


def least_blocks(rows: TidyRows) -> list[TidyRow]:
    """Of every number of neighbouring layers but all, the block with the smallest angle."""
    angles = [row for row in rows if row["measure"] == "angle"]
    n_layers = max(row["other_depth"] for row in angles)
    return [
        min(
            (row for row in angles if row["other_depth"] - row["depth"] == length),
            key=lambda row: row["value"],
        )
        for length in range(1, max(2, n_layers))
    ]


def named(block: TidyRow) -> str:
    """The layers between two depths: 3-5."""
    return format_ranges(range(block["depth"], block["other_depth"]))


def finding(rows: TidyRows) -> str:
    """Which layer moves the states least, which block does, and which depths are most alike."""
    words = (_influence(rows), _pair(rows), _alike(rows), _across(rows))
    return " ".join(part for part in words if part)


def _influence(rows: TidyRows) -> str:
    """The layers that move the states least and most."""
    layers = sorted(layers_of(rows), key=lambda row: row["value"])
    least, most = layers[0], layers[-1]
    n_texts = counted(least["n"], "text")
    if least is most:
        return f"Layer 0 moves the states by {with_interval(least)} (1 − cosine; {n_texts})."
    return (
        f"Layer {least['layer']} moves the states least: block influence {with_interval(least)};"
        f" layer {most['layer']} most: {with_interval(most)} ({n_texts})."
    )


def _pair(rows: TidyRows) -> str:
    """The two neighbouring layers that turn the states least; empty where there are no others."""
    if len(layers_of(rows)) < 3:
        return ""
    pair = least_blocks(rows)[1]
    return (
        f"Of two neighbouring layers, {named(pair)} turn the states least: {with_interval(pair)}"
        " of a half-turn."
    )


def _alike(rows: TidyRows) -> str:
    """The neighbouring depths that are most and least alike."""
    pairs = neighbours(rows)
    if not pairs:
        return ""
    ranked = sorted(pairs, key=lambda row: row["value"])
    most, least = ranked[-1], ranked[0]
    words = (
        f"Depths {most['depth']} and {most['other_depth']} are most alike: CKA"
        f" {with_interval(most)}"
    )
    if least is most:
        return f"{words}."
    return (
        f"{words}; {least['depth']} and {least['other_depth']} are the least alike neighbours:"
        f" {with_interval(least)}."
    )


def _across(rows: TidyRows) -> str:
    """Where the other model differs most at the same depth; empty where there is none."""
    same = [
        row
        for row in rows
        if row["measure"] == "other_cka"
        and row["depth"] == row["other_depth"]
        and row["value"] is not None
    ]
    if not same:
        return ""
    furthest = min(same, key=lambda row: row["value"])
    return (
        f"Compared with {furthest['other']}, depth {furthest['depth']} differs most from the same"
        f" depth there: CKA {with_interval(furthest)}."
    )


def neighbours(rows: TidyRows) -> list[TidyRow]:
    """CKA of each depth with the next one."""
    return [
        row
        for row in within(rows)
        if row["other_depth"] == row["depth"] + 1 and row["value"] is not None
    ]


def with_interval(row: TidyRow) -> str:
    """A value with its interval, where it has one: 0.952 (0.934 to 0.967)."""
    if row["low"] is None:
        return f"{row['value']:.3f}"
    return f"{row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})"


def summary(rows: TidyRows) -> dict[str, Any]:
    """Layers by influence, least first, and the CKA of neighbouring depths."""
    ranked = sorted(layers_of(rows), key=lambda row: row["value"])
    return {
        "layers_by_influence": [row["layer"] for row in ranked],
        "neighbour_cka": {str(row["depth"]): row["value"] for row in neighbours(rows)},
    }
