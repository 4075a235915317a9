"""What a page says first of decoding."""

from __future__ import annotations

from microtome.experiments.kao.decoding.report import (
    CLEAR,
    curve_rows,
    inner_rows,
    what_inner_depths_hold,
)
from microtome.experiments.kit.wording import between, percent
from microtome.views import Card, Headline, TidyRows


def headline(rows: TidyRows) -> Headline:
    """Which depths can be read beyond their control, and what comes back at the end."""
    curve = curve_rows(rows)
    inner, last = inner_rows(curve), curve[-1]
    n_above = sum(row["accuracy"] - row["control"] >= CLEAR for row in inner)
    cards = [
        Card("depths beyond random blocks", f"{n_above} of {len(inner)}", "by 10 points or more"),
        Card("tokens back at the end", percent(last["accuracy"]),
             between(last["low"], last["high"])),
        Card("random blocks at the end", percent(last["control"])),
    ]  # fmt: skip
    if inner:
        best = max(inner, key=lambda row: row["accuracy"])
        cards.append(Card(f"most tokens back: depth {best['depth']}", percent(best["accuracy"])))
    readout = curve[0]["readout"]
    said = what_inner_depths_hold(curve) or "Only some inner depths can be told from random blocks"
    sure = (
        f"Tokens are read through the {readout} readout, of {last['n']:,} tokens at every depth."
        " Random blocks pass a text on through the residual path alone: only what is above them"
        " is the model's."
    )
    return Headline(f"{said}.", tuple(cards), sure)
