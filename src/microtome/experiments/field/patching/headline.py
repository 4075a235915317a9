"""What a page of patching says first: the finding, and at which depths a position holds it."""

from __future__ import annotations

from microtome.experiments.field.patching.plan import CHANGED
from microtome.experiments.field.patching.report import (
    NAMES,
    carried_from,
    cell,
    changed_until,
    finding,
    n_layers_of,
    n_pairs_of,
    of_stage,
    read_group,
    restored,
)
from microtome.experiments.kit.wording import counted
from microtome.views import Card, Headline, TidyRows


def headline(rows: TidyRows) -> Headline:
    """The finding, where the answer is read and where it was changed, and how many pairs say so."""
    until, at = changed_until(rows), cell(rows, CHANGED, changed_until(rows))
    n_pairs, n_left_out = n_pairs_of(rows), sum(row["n"] for row in of_stage(rows, "left out"))
    cards = (
        _reads(rows),
        Card(f"{NAMES[CHANGED]} hold half or more", f"to depth {until}", f"{restored(at)} there"),
        Card("pairs", f"{n_pairs}", f"{n_left_out} more left out" if n_left_out else ""),
    )
    return Headline(finding(rows), cards, _sure(rows))


def _reads(rows: TidyRows) -> Card:
    """From which depth on the answer is where the head reads it."""
    group, start, last = read_group(rows), carried_from(rows), n_layers_of(rows)
    if group is None or start is None:
        return Card("one position holds half or more", "not at the last depth")
    note = (
        "where the head reads it"
        if start == last
        else f"{restored(cell(rows, group, start))} there"
    )
    return Card(f"{NAMES[group]} holds half or more", f"from depth {start}", note)


def _sure(rows: TidyRows) -> str:
    """What the intervals are of, and what they don't cover."""
    pairs = counted(n_pairs_of(rows), "pair")
    return (
        f"Shares are ratios of sums over {pairs}, with 95 % intervals by drawing pairs again."
        " Pairs made by swapping a word are those of a few swaps that change the answer most."
    )
