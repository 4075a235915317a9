"""What a page says first of a comparison."""

from __future__ import annotations

from microtome.experiments.field.comparison.report import (
    SIGNIFICANT,
    differences_of,
    finding,
    scores_of,
)
from microtome.experiments.kit.wording import counted, percent, score_card
from microtome.models.source import short_names
from microtome.views import Card, Headline, TidyRows


def headline(rows: TidyRows) -> Headline:
    """Which model is best, which is fastest, and how many pairs differ beyond chance."""
    scores, pairs = scores_of(rows), differences_of(rows)
    names = short_names([row["model"] for row in scores])
    best = max(scores, key=lambda row: row["value"])
    fastest = max(scores, key=lambda row: row["speed"])
    n_sure = sum(row["p_holm"] < SIGNIFICANT for row in pairs)
    score = score_card(best)
    cards = [
        Card(f"highest {score.label}: {names[best['model']]}", score.value, score.note),
        Card("pairs that differ", f"{n_sure} of {len(pairs)}", "beyond chance (Holm, 5 %)"),
        Card(f"fastest: {names[fastest['model']]}", f"{fastest['latency_ms']:.1f} ms",
             "for one text"),
    ]  # fmt: skip
    constants = {row["constant_value"] for row in scores} - {None}
    if len(constants) == 1:
        cards.append(Card("one constant answer", percent(constants.pop())))
    sure = (
        f"{counted(len(scores), 'model')} read the same {best['n']:,} {best['unit']}, so each pair"
        " is compared row by row. Times are of this machine, measured by turns."
    )
    return Headline(finding(rows), tuple(cards), sure)
