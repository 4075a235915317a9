"""Rows of attention-patterns as curves, a map, tables and words."""

from __future__ import annotations

from typing import Any

from microtome.experiments.kit.head_tables import head_map, token_map
from microtome.experiments.kit.wording import layers_named, percent
from microtome.views import (
    Cell,
    Curve,
    HeatMap,
    Panels,
    Table,
    TidyRow,
    TidyRows,
    View,
    series_of,
    table_of,
)

HETEROGENEOUS = "heterogeneous"
SHORT = {
    "vertical": "v", "diagonal": "d", "vertical+diagonal": "v+d", "block": "b", HETEROGENEOUS: "h",
}  # fmt: skip
HALF = 0.5  # of the maps; more than that are most
STRIPE_COLUMNS = ("on_cls", "on_sep", "on_punctuation", "on_other")


def views(rows: TidyRows) -> tuple[View, ...]:
    """Shares by layer, a map of each pattern, the dominant pattern of heads, the stripes."""
    return (
        _by_layer(rows), *example_maps(rows), _heat_map(rows), _dominant(rows), _overall(rows),
        _stripes(rows),
    )  # fmt: skip


def of_all_maps(rows: TidyRows) -> dict[str, TidyRow]:
    """The row of every pattern that counts all layers and heads."""
    return {row["pattern"]: row for row in rows if row["layer"] is None}


def dominant(rows: TidyRows) -> dict[tuple[int, int], TidyRow]:
    """The row of each head's most frequent pattern."""
    highest: dict[tuple[int, int], TidyRow] = {}
    for row in rows:
        if row["head"] is not None:
            place = (row["layer"], row["head"])
            if place not in highest or row["share"] > highest[place]["share"]:
                highest[place] = row
    return highest


def _by_layer(rows: TidyRows) -> Curve:
    layers = [row for row in rows if row["layer"] is not None and row["head"] is None]
    layers.sort(key=lambda row: row["layer"])
    by_pattern = {name: [row for row in layers if row["pattern"] == name] for name in SHORT}
    series = (
        series_of(name, of_pattern, "layer", "share", ends=("low", "high"))
        for name, of_pattern in by_pattern.items()
    )
    return Curve(
        "Attention patterns by layer", "layer", "share of maps", tuple(series),
        says=which_prevails(rows),
    )  # fmt: skip


def which_prevails(rows: TidyRows) -> str:
    """The pattern that is sure to be that of most maps, and in which layers; empty for none."""
    most = max(of_all_maps(rows).values(), key=lambda row: row["share"])
    own = [row for row in rows if row["head"] is None and row["pattern"] == most["pattern"]]
    by_layer = {row["layer"]: row["low"] > HALF for row in own if row["layer"] is not None}
    sure = [layer for layer, is_sure in by_layer.items() if is_sure]
    if len(sure) == len(by_layer):
        return f"Most maps are {most['pattern']} in every layer"
    if most["low"] > HALF:
        return f"Most maps are {most['pattern']}"
    return f"{layers_named(sure)}: most maps are {most['pattern']}" if sure else ""


def example_maps(rows: TidyRows) -> tuple[Panels, ...]:
    """A map of each pattern; none of rows that were measured before maps were kept."""
    whole = of_all_maps(rows)
    maps = tuple(_example(row) for row in whole.values() if row.get("example_tokens"))
    title = "A map of each pattern, of the head that has it most often"
    return (Panels(title, maps),) if maps else ()


def _example(row: TidyRow) -> HeatMap:
    title = f"{row['pattern']}: head {row['example_layer']}.{row['example_head']}"
    return token_map(title, row["example_tokens"], row["example_weights"])


def _heat_map(rows: TidyRows) -> HeatMap:
    patterns = {place: row["pattern"] for place, row in dominant(rows).items()}
    return head_map(
        "Heterogeneous maps of each head",
        [row for row in rows if row["head"] is not None and row["pattern"] == HETEROGENEOUS],
        "share",
        value_label="share of maps",
        marked=lambda row: patterns[row["layer"], row["head"]] == HETEROGENEOUS,
        mark_label="its most frequent pattern",
        percent=True,
    )


def _dominant(rows: TidyRows) -> Table:
    highest = dominant(rows)
    layers, heads = sorted({i for i, _ in highest}), sorted({j for _, j in highest})
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        (i, *(SHORT[highest[i, j]["pattern"]] for j in heads)) for i in layers
    )
    return Table("The most frequent pattern of each head", ("layer", *map(str, heads)), cells)


def _overall(rows: TidyRows) -> Table:
    columns = ("pattern", "share", "low", "high", "corrected", "corrected_low", "corrected_high")
    whole = list(of_all_maps(rows).values())
    return table_of("Shares of all maps", whole, columns, percent=columns[1:])


def _stripes(rows: TidyRows) -> Table:
    striped = [
        {**row, "layer": "all" if row["layer"] is None else row["layer"]}
        for row in rows
        if row["head"] is None and row["pattern"] == "vertical" and row["on_cls"] is not None
    ]
    title = "Where the strongest stripe of vertical maps falls"
    return table_of(title, striped, ("layer", *STRIPE_COLUMNS), percent=STRIPE_COLUMNS)


def finding(rows: TidyRows) -> str:
    """How many maps may hold something linguistic, what most look like, where the stripes fall."""
    whole, highest = of_all_maps(rows), dominant(rows).values()
    mixed, vertical = whole[HETEROGENEOUS], whole["vertical"]
    most = max(whole.values(), key=lambda row: row["share"])
    untrained = ", not fine-tuned" if mixed["checkpoint"] == "pretrained" else ""
    n_mixed = sum(row["pattern"] == HETEROGENEOUS for row in highest)
    corrected = with_interval(mixed, "corrected", "corrected_low", "corrected_high")
    words = (
        "Heterogeneous maps, which might hold something linguistic, are at most"
        f" {with_interval(mixed, 'share', 'low', 'high')} of {mixed['n_maps']:,}"
        f" ({mixed['n']:,} examples, {len(highest)} heads{untrained}); corrected for the"
        f" classifier's mistakes {corrected}."
        f" The most frequent pattern is {most['pattern']} ({percent(most['share'])});"
        f" {n_mixed or 'none'} of the {len(highest)} heads"
        f" {'is' if n_mixed == 1 else 'are'} heterogeneous more often than anything else."
    )
    if vertical["on_cls"] is None:
        return words
    return (
        f"{words} The strongest stripe of vertical maps is on [CLS] in"
        f" {percent(vertical['on_cls'])}, on [SEP] in {percent(vertical['on_sep'])}, on punctuation"
        f" in {percent(vertical['on_punctuation'])} of them."
    )


def with_interval(row: TidyRow, value: str, low: str, high: str) -> str:
    """A share with its interval: 54.3 % (43.9 % to 63.7 %); without one where its ends agree."""
    ends = percent(row[low]), percent(row[high])
    interval = "" if ends[0] == ends[1] else f" ({ends[0]} to {ends[1]})"
    return f"{percent(row[value])}{interval}"


def summary(rows: TidyRows) -> dict[str, Any]:
    """Shares of all maps, and the bound that the paper speaks of."""
    whole = of_all_maps(rows)
    return {
        "shares": {pattern: row["share"] for pattern, row in whole.items()},
        "corrected": {pattern: row["corrected"] for pattern, row in whole.items()},
        "heterogeneous_at_most": whole[HETEROGENEOUS]["share"],
    }
