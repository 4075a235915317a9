"""What a page says first of duplicated layers."""

from __future__ import annotations

from microtome.experiments.kao.duplication.depth_comparison import (
    OTHER_ROWS,
    SELECTION,
    TrainedDepth,
    baseline_not_learnt,
    baseline_of,
    trained_depths,
)
from microtome.experiments.kao.duplication.report import (
    decoded_rows,
    finding,
    how_deep_it_reads,
    picked_row,
    what_depth_does,
)
from microtome.experiments.kao.duplication.strategies import BASELINE
from microtome.experiments.kit.wording import between, percent, points
from microtome.views import Card, Headline, TidyRow, TidyRows


def headline(rows: TidyRows) -> Headline:
    """Whether more layers help, by as much as was measured: trained, else decoded."""
    depths, decoded = trained_depths(rows), decoded_rows(rows)
    cards = [*_trained_cards(rows, depths), *_decoded_cards(decoded)]
    tried = {row["layers"] for row in [*decoded, *_runs(depths)]}
    cards.append(Card("depths tried", str(len(tried))))
    if depths:
        cards.append(Card("training runs", str(len(_runs(depths)))))
    return Headline(_said(rows, depths, decoded), tuple(cards[:5]), _how_sure(depths))


def _runs(depths: list[TrainedDepth]) -> list[TidyRow]:
    return [row for depth in depths for row in depth.rows]


def _said(rows: TidyRows, depths: list[TrainedDepth], decoded: list[TidyRow]) -> str:
    if depths and not baseline_not_learnt(rows):
        said = what_depth_does(rows) or "No number of added layers is sure to help or to hurt"
        return f"{said}."
    said = how_deep_it_reads(decoded)
    return f"{said}." if said and not depths else finding(rows)


def _trained_cards(rows: TidyRows, depths: list[TrainedDepth]) -> list[Card]:
    base = baseline_of(depths)
    if base is None:
        return []
    best = max(depths, key=lambda depth: depth.mean)
    metric = base.rows[0]["metric"]
    cards = [
        Card(f"{metric} with {depth.n_layers} layers", percent(depth.mean), between(*depth.ends))
        for depth in dict.fromkeys((base, best))
    ]
    strategies = dict.fromkeys(row["strategy"] for row in rows if row.get("stage") == SELECTION)
    for strategy in list(strategies)[:1]:
        honest = picked_row(rows, strategy, OTHER_ROWS)
        if honest is not None and not baseline_not_learnt(rows):
            low, high = honest["low"], honest["high"]
            ends = "" if low is None else f"{points(low)} to {points(high)}"
            gain = f"{points(honest['value'])} points"
            cards.insert(0, Card("best depth, on other rows and seeds", gain, ends))
    return cards


def _decoded_cards(decoded: list[TidyRow]) -> list[Card]:
    """The unedited model and the deepest, read without training."""
    if not decoded:
        return []
    base = [row for row in decoded if row["strategy"] == BASELINE][:1]
    deepest = max(decoded, key=lambda row: row["layers"])
    return [
        Card(f"tokens back with {row['layers']} layers", percent(row["value"]),
             f"random blocks {percent(row['control'])}")
        for row in (*base, deepest)
    ]  # fmt: skip


def _how_sure(depths: list[TrainedDepth]) -> str:
    if not depths:
        return "Nothing was trained: decoding shows what added layers do before they learn."
    n_seeds = min(len(depth.rows) for depth in depths)
    if n_seeds < 3:
        return "An interval over seeds needs three training runs of each depth; here are fewer."
    return (
        f"Differences are over {n_seeds} seeds and corrected for the number of depths (Holm)."
        " The best depth is worth what it scores on rows and seeds that it wasn't picked on."
    )
