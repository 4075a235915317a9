"""What a page says first of description lengths."""

from __future__ import annotations

from microtome.experiments.field.mdl_probing.plan import FREQUENCIES
from microtome.experiments.field.mdl_probing.report import (
    answer,
    how_sure,
    interval_of,
    number,
    shortest,
    without_states,
)
from microtome.experiments.kit.wording import counted
from microtome.views import Card, Headline, TidyRows


def headline(rows: TidyRows) -> Headline:
    """The shortest depth, with what it saves against each control."""
    best, alone = shortest(rows), without_states(rows, FREQUENCIES)
    cards = (
        Card(
            f"bits per label at depth {best['depth']}", number(best["bits_per_label"]),
            interval_of(best, "bits_per_label"),
        ),
        Card(
            "bits saved against random blocks", number(best["saved"], sign=True),
            interval_of(best, "saved", sign=True),
        ),
        Card("uniform code", f"{best['compression']:.2f}×", "as long as this one"),
        Card("label frequencies alone", number(alone["bits_per_label"]), "bits per label"),
        Card(
            "selectivity", number(best["selectivity"], sign=True), "bits more for random labels",
        ),
    )  # fmt: skip
    n_seeds = counted(len({row["seed"] for row in rows}), "order")
    return Headline(
        f"{answer(rows)}.", cards, f"Measured in {n_seeds} of the rows; {how_sure(rows)}."
    )
