"""What a page says first of a trim."""

from __future__ import annotations

from microtome.experiments.field.trim.choice import (
    Wish,
    base_of,
    has_learnt,
    nearest,
    recommended,
    shallower,
)
from microtome.experiments.field.trim.report import loss_in_words, sentence, times
from microtome.experiments.kit.wording import change, counted, percent, score_card
from microtome.views import Card, Headline, TidyRow, TidyRows


def headline(rows: TidyRows, wish: Wish | None = None) -> Headline:
    """What to cut by a wish, what it costs, and what it saves."""
    wish = Wish() if wish is None else wish
    base, cut = base_of(rows), recommended(rows, wish)
    shown = cut or nearest(rows, wish)
    n_gone = 0 if cut is None else base["layers"] - cut["layers"]
    cards = [Card("layers that can go", f"{n_gone} of {base['layers']}", _which(cut, wish))]
    cards.append(score_card(base))
    if not has_learnt(rows):
        cards = cards[1:]  # what its cuts cost and save means nothing
    elif shown is not None:
        name = "the cut" if cut is not None else f"the nearest, {shown['edit']}"
        if shown["speed"] is not None:
            speed = times(shown["speed"], wish.speed)
            cards.append(Card(f"speed of {name}", speed, _time(shown)))
        cost = change(shown["delta"], shown["low"], shown["high"]).partition(" (")
        cards.append(Card(f"cost of {name}", cost[0], cost[2].removesuffix(")")))
        smaller = 1 - shown["parameters"] / base["parameters"]
        size = f"{percent(smaller)} smaller" if smaller >= 0 else f"{percent(-smaller)} larger"
        cards.append(Card(f"size of {name}", size, f"{shown['parameters']:,} parameters"))
    return Headline(_said(rows, wish, base, cut), tuple(cards), _sure(rows, base))


def _said(rows: TidyRows, wish: Wish, base: TidyRow, cut: TidyRow | None) -> str:
    """The recommendation for people in a hurry; where there is none, why."""
    layers = base["layers"]
    if cut is not None:
        cost = change(cut["delta"], cut["low"], cut["high"])
        pace = "" if cut["speed"] is None else f", {times(cut['speed'])} the speed"
        return f"{cut['layers']} of {layers} layers are enough: {cost}{pace}."
    if wish.lose is None or not shallower(rows) or not has_learnt(rows):
        return sentence(rows, wish)
    return f"No layer can go yet: no cut is sure to lose less than {loss_in_words(wish.lose)}."


def _which(cut: TidyRow | None, wish: Wish) -> str:
    if cut is not None:
        return f"{cut['edit']}{', healed' if cut['healed'] else ', without training'}"
    return "" if wish.lose is None else f"sure to lose less than {loss_in_words(wish.lose)}"


def _time(row: TidyRow) -> str:
    return "" if row["latency_ms"] is None else f"{row['latency_ms']:.1f} ms for one text"


def _sure(rows: TidyRows, base: TidyRow) -> str:
    n_tried = sum(row["stage"] == "screened" for row in rows)
    return (
        f"{counted(n_tried, 'cut')} were ranked on other {base['unit']} than the {base['n']:,} that"
        " price them, so the price isn't flattered by the choice. Intervals are 95 %, of changes"
        " row by row; speeds are measured on this machine."
    )
