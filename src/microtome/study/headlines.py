"""What the page of a run says first: one experiment's headline, or that of several together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from microtome.experiments.kit.wording import unit_of
from microtome.papers.answer import CANT_TELL, DOESNT_HOLD, HOLDS, Answer
from microtome.report.text import sentences
from microtome.views import Card, Headline, TidyRows

MOST_CARDS = 5
LEADING = 3  # cards of the experiment that a page is led by; the others have what is left


def plain_headline(
    finding: str, rows: TidyRows, claims: Mapping[str, Answer], source: str
) -> Headline:
    """Of an experiment that says nothing itself: its finding's first sentence, and what is counted.

    Claims of the paper are counted where they are judged.
    """
    first, *more = sentences(finding) or [""]
    verdicts = [answer.verdict for answer in claims.values() if answer.verdict]
    cards = []
    if verdicts:
        told = [(word, verdicts.count(word)) for word in (DOESNT_HOLD, CANT_TELL)]
        note = ", ".join(f"{word}: {n}" for word, n in told if n)
        cards.append(Card("claims that hold", f"{verdicts.count(HOLDS)} of {len(verdicts)}", note))
    measured = [row for row in rows if isinstance(row.get("n"), int)]
    if measured:
        most = max(measured, key=lambda row: row["n"])
        cards.append(Card(f"{unit_of(most)} measured", f"{most['n']:,}"))
    if seeds := {row["seed"] for row in rows if row.get("seed") is not None}:
        cards.append(Card("seeds", str(len(seeds))))
    cards.append(Card("results", f"{len(rows):,}", "lines of results.parquet"))
    cards.append(Card("method of", source.split(",")[0]))
    return Headline(first, tuple(cards[:MOST_CARDS]), " ".join(more[:1]))


def joint_headline(
    headlines: Sequence[tuple[str, Headline]], *, same_subject: bool
) -> Headline | None:
    """Of several experiments, each with what it is about; None without any.

    On one model and task (``same_subject``) the first leads and the others add the number that
    matters most to each. Else every model and task has its say in turn, under its name.
    """
    if not headlines:
        return None
    (about, first), *others = headlines
    if same_subject:
        n_first = max(LEADING, MOST_CARDS - len(others))
        cards = [*first.cards[:n_first], *(h.cards[0] for _, h in others if h.cards)]
        known = {card.label: card for card in reversed(cards)}  # a score is said once
        shown = [card for card in cards if known[card.label] is card]
        return replace(first, cards=tuple(shown[:MOST_CARDS]))
    named = [
        [replace(card, label=f"{name}: {card.label}") for card in headline.cards]
        for name, headline in headlines
    ]
    in_turn = [card for turn in zip_longest(*named) for card in turn if card is not None]
    sentence = f"{about}: {first.sentence}" if about else first.sentence
    return Headline(sentence, tuple(in_turn[:MOST_CARDS]), first.sure)
