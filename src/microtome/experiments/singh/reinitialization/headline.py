"""What a page says first of re-initialised layers."""

from __future__ import annotations

from microtome.experiments.kit.learning import constant_of
from microtome.experiments.kit.seed_curves import (
    by_place,
    difference,
    ends_of,
    mean_of,
    said,
    size_name,
    sizes,
)
from microtome.experiments.kit.wording import between, counted, percent, points
from microtome.experiments.singh.reinitialization.report import finding, scores, what_it_costs
from microtome.views import Card, Headline, TidyRow, TidyRows


def headline(rows: TidyRows) -> Headline:
    """What pre-training is worth with the most training rows, and how many seeds say so."""
    size = sizes(rows)[0]
    of_size = scores(rows, size)
    column = "layer" if rows[0]["side"] == "each" else "reinitialized"
    base = [row for row in of_size if row["reinitialized"] == 0]
    arms = by_place([row for row in of_size if row["reinitialized"]], column)
    cards = [_score("as pre-trained", base)] if base else []
    if arms:
        worst = min(arms, key=lambda place: mean_of(arms[place]))
        layer = f"layer {worst}" if column == "layer" else counted(worst, "layer")
        cards.append(_score(f"{layer} re-initialised", arms[worst]))
        if base:
            cards.append(_cost(arms[worst], base))
    constant = constant_of(of_size)
    if constant is not None:
        cards.append(Card("one constant answer", percent(constant)))
    cards.append(Card("training runs", str(len(of_size))))
    cards.append(Card("seeds", str(len({row["seed"] for row in of_size})), size_name(size)))
    said_for_sure = what_it_costs(rows)
    first = f"{said_for_sure}." if said_for_sure else finding(rows)
    return Headline(first, tuple(cards[:5]), _sure(of_size))


def _score(what: str, runs: list[TidyRow]) -> Card:
    ends = ends_of(runs)
    return Card(f"{runs[0]['metric']} {what}", percent(mean_of(runs)), between(*ends))


def _cost(runs: list[TidyRow], base: list[TidyRow]) -> Card:
    found = difference(runs, base)
    return Card(
        "pre-training is worth",
        f"{points(-found.value)} points",
        said(found).partition(" (")[2].removesuffix(")"),
    )


def _sure(rows: TidyRows) -> str:
    n_seeds = len({row["seed"] for row in rows})
    if n_seeds < 3:
        return (
            f"{counted(n_seeds, 'seed')} can't tell the change from the luck of a training run:"
            " three are the least that give an interval over seeds."
        )
    return f"Intervals are Student's, over {n_seeds} seeds, each with its own training run."
