"""What a page says first of disabled heads."""

from __future__ import annotations

from statistics import median

from microtome.experiments.kit.learning import not_learnt
from microtome.experiments.kit.wording import points, score_card, unit_of
from microtome.experiments.kovaleva.head_disabling.report import (
    FREE,
    baseline_of,
    beyond_chance,
    single_heads,
    which_matter,
)
from microtome.views import Card, Headline, TidyRow, TidyRows


def headline(rows: TidyRows) -> Headline:
    """How many heads matter, how many are sure to be dispensable, what the best is worth."""
    base, heads = baseline_of(rows), single_heads(rows)
    n_matter = sum(map(beyond_chance, heads))
    n_free = sum(row["low"] is not None and row["low"] > FREE for row in heads)
    worst = min(heads, key=lambda row: row["delta"])
    cards = [
        Card("heads that matter", f"{n_matter} of {len(heads)}", "one at a time, beyond chance"),
        score_card(base),
        Card("sure to cost less than 1 point", f"{n_free} of {len(heads)}", "95 % each"),
        Card(f"largest loss: head {worst['target']}", f"{points(worst['delta'])} points",
             _ends(worst, "low", "high")),
    ]  # fmt: skip
    if (honest := base["honest_gain"]) is not None:
        ends = _ends(base, "honest_low", "honest_high")
        cards.append(Card("best head, on other rows", f"{points(honest)} points", ends))
    return Headline(_sentence(base, heads), tuple(cards), _sure(base, heads))


def _sentence(base: TidyRow, heads: TidyRows) -> str:
    if why := not_learnt([base], "The model"):
        return why
    if said := which_matter(heads):
        return f"{said}; one at a time, the other heads are indistinguishable from chance."
    return f"No single head of {len(heads)} is sure to matter for the {base['metric']}."


def _ends(row: TidyRow, low: str, high: str) -> str:
    """The interval of a change: −1.1 to +0.3; empty where too few rows have none."""
    if row[low] is None or row[high] is None:
        return ""
    ends = [points(row[end]) for end in (low, high)]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _sure(base: TidyRow, heads: TidyRows) -> str:
    reaches = [(row["high"] - row["low"]) / 2 for row in heads if row["low"] is not None]
    known = (
        f" The change of a typical head is known to within {100 * median(reaches):.1f} points."
        if reaches
        else ""
    )
    return (
        f"All heads are compared on the same {base['n']:,} {unit_of(base)}, corrected for looking"
        f" at all of them (max-T, 5 %).{known}"
    )
