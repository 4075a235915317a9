"""What a page says first of the lens."""

from __future__ import annotations

from microtome.experiments.field.lens.report import (
    against_control,
    agrees_from,
    closer_rows,
    ends,
    half_row,
    inner_rows,
    nats,
    of_reading,
)
from microtome.experiments.kit.wording import counted
from microtome.views import Card, Headline, TidyRows


def headline(rows: TidyRows) -> Headline:
    """Which depths the lens tells something about, and KL half-way in each reading."""
    lens, direct, control = (half_row(rows, name) for name in ("lens", "direct", "control"))
    n_closer, n_inner = len(closer_rows(rows)), len(inner_rows(rows, "lens"))
    first = agrees_from(of_reading(rows, "direct"))
    cards = (
        Card("depths beyond random blocks", f"{n_closer} of {n_inner}", "95 % interval by text"),
        Card(f"KL at depth {lens['depth']}, lens", f"{nats(lens['kl'])} nats", ends(lens)),
        Card("read directly", f"{nats(direct['kl'])} nats", ends(direct)),
        Card("random blocks", f"{nats(control['kl'])} nats", ends(control)),
        Card("directly agrees from", f"depth {first}", "nine in ten top tokens are the last's"),
    )
    sure = (
        f"{lens['n']:,} {'masked ' if lens['masked'] else ''}tokens of"
        f" {counted(lens['n_texts'], 'text')} that no map was fitted to;"
        f" the maps saw {lens['n_fit_tokens']:,} tokens of"
        f" {counted(lens['n_fit_texts'], 'other text')}. An affine map learns much by itself: only"
        " what is closer than the same map on random blocks is the layers' doing."
    )
    return Headline(f"{against_control(rows)}.", cards, sure)
