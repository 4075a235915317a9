"""What a page says first of layer removal."""

from __future__ import annotations

from microtome.experiments.kao.layer_removal.report import (
    FREE,
    baseline_of,
    cut_to_make,
    described,
    free_cuts,
    has_learnt,
    recommendation,
    rows_to_decide,
    single_layers,
)
from microtome.experiments.kit.wording import change, percent, score_card, unit_of
from microtome.views import Card, Headline, TidyRow, TidyRows


def headline(rows: TidyRows) -> Headline:
    """How many layers can go, what that costs, and the layer that is hardest to lose."""
    base, cut = baseline_of(rows), cut_to_make(rows)
    cards = [_layers_that_can_go(rows, base), score_card(base)]
    if cut is not None and cut["speed"] is not None:
        cards.append(Card(f"speed of {cut['edit']}", f"{cut['speed']:.1f}×", _time(cut)))
    if singles := single_layers(rows):
        worst = min(singles, key=lambda row: row["delta"])
        cost = change(worst["delta"], worst["low"], worst["high"])
        cards.append(Card("hardest to lose", f"layer {worst['target']}", cost))
    if (constant := base.get("constant_value")) is not None:
        cards.append(Card("one constant answer", percent(constant)))
    return Headline(_sentence(rows, base, cut), tuple(cards), _sure(base, cut))


def _layers_that_can_go(rows: TidyRows, base: TidyRow) -> Card:
    free = free_cuts(rows) if has_learnt(rows) else []
    n_gone = base["layers"] - free[0]["layers"] if free else 0
    note = f"{free[0]['edit']}, without training" if free else "sure to cost less than 1 point"
    return Card("layers that can go", f"{n_gone} of {base['layers']}", note)


def _sentence(rows: TidyRows, base: TidyRow, cut: TidyRow | None) -> str:
    if cut is None or not has_learnt(rows):
        return recommendation(rows)
    if not free_cuts(rows):
        return "No layer can go without training: no cut is sure to cost less than 1 point."
    return (
        f"{cut['layers']} of {base['layers']} layers are enough without training: {described(cut)}."
    )


def _time(row: TidyRow) -> str:
    return "" if row["latency_ms"] is None else f"{row['latency_ms']:.1f} ms for one text"


def _sure(base: TidyRow, cut: TidyRow | None) -> str:
    unit = unit_of(base)
    n = f"{base['n']:,} {unit} were measured"
    words = f"Every cut is picked on some {unit} and priced on others, with 95 % intervals"
    enough = rows_to_decide(cut) if cut is not None and cut["low"] <= FREE else None
    if cut is None or enough is None:
        return f"{words}; {n}."
    return f"{words}. {n}; about {enough:,} would decide on {cut['edit']}."
