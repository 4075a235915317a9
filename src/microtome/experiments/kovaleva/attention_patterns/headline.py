"""What a page says first of attention patterns."""

from __future__ import annotations

from microtome.experiments.kit.wording import between, percent
from microtome.experiments.kovaleva.attention_patterns.report import (
    HETEROGENEOUS,
    dominant,
    of_all_maps,
)
from microtome.views import Card, Headline, TidyRows


def headline(rows: TidyRows) -> Headline:
    """How many maps may hold something linguistic, and which pattern is the most frequent."""
    whole, heads = of_all_maps(rows), dominant(rows).values()
    mixed = whole[HETEROGENEOUS]
    simple = [row for pattern, row in whole.items() if pattern != HETEROGENEOUS]
    most = max(simple, key=lambda row: row["share"])
    n_mixed = sum(row["pattern"] == HETEROGENEOUS for row in heads)
    cards = (
        Card("heterogeneous maps", percent(mixed["share"]), between(mixed["low"], mixed["high"])),
        Card("corrected for the classifier", percent(mixed["corrected"]),
             between(mixed["corrected_low"], mixed["corrected_high"])),
        Card(f"most frequent pattern: {most['pattern']}", percent(most["share"]),
             between(most["low"], most["high"])),
        Card("mostly heterogeneous heads", f"{n_mixed} of {len(heads)}"),
        Card("maps", f"{mixed['n_maps']:,}", f"of {mixed['n']:,} examples"),
    )  # fmt: skip
    sentence = f"{percent(mixed['share'])} of the attention maps have no simple pattern."
    sure = (
        "Those are the heterogeneous maps; they may hold something linguistic, but need not."
        " Intervals are over examples, those of the corrected share over the classifier's mistakes"
        " as well."
    )
    return Headline(sentence, cards, sure)
