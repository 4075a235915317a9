"""The paper's claim about attention drift: the last two layers change most."""

from __future__ import annotations

from microtome.experiments.kit.answer import sure_above, verdict
from microtome.experiments.kovaleva.attention_drift.report import whole_layers, with_interval
from microtome.papers.answer import CANT_TELL, Answer
from microtome.views import TidyRows

EXCEPTED = "qqp"  # the paper says that the last two layers aren't those that change most there


def claims(rows: TidyRows) -> dict[str, Answer]:
    """Whether the last two layers changed most, in every fine-tuning.

    By intervals over texts: holds where the last two are both below all others, doesn't hold where
    one of the others is below one of them. Fine-tunings that disagree decide nothing. QQP, which
    the paper excepts, gets no verdict.
    """
    seeds = list(dict.fromkeys(row["seed"] for row in rows))
    tunings = [whole_layers([row for row in rows if row["seed"] == seed]) for seed in seeds]
    lowest = sorted(tunings[0], key=lambda row: row["cosine"])[:2]
    shown = " and ".join(f"{row['layer']} ({with_interval(row)})" for row in lowest)
    words = f"layers {shown} of {len(tunings[0])} change most"
    if len(seeds) == 1:
        words += ", one fine-tuning"
    gaps = [gap for layers in tunings if (gap := _gap(layers)) is not None]
    if len(gaps) < len(tunings):
        return {"layers": Answer(words, CANT_TELL)}
    votes = {sure_above(low, high, 0.0) for _, low, high in gaps}
    if len(votes) > 1:
        words = f"fine-tunings disagree: {words}"
    values, lows, highs = zip(*gaps, strict=True)
    pooled = (sum(values) / len(values), min(lows), max(highs))
    word = None if rows[0].get("task") == EXCEPTED else verdict(sure_above(*pooled[1:], 0.0))
    return {"layers": Answer(words, word, *pooled, unit="")}


def _gap(layers: TidyRows) -> tuple[float, float, float] | None:
    """The lowest cosine of the other layers minus the higher one of the last two, with its ends."""
    ordered = sorted(layers, key=lambda row: row["layer"])
    if len(ordered) < 3 or any(row["low"] is None for row in ordered):
        return None
    last, before = ordered[-2:], ordered[:-2]
    return (
        min(row["cosine"] for row in before) - max(row["cosine"] for row in last),
        min(row["low"] for row in before) - max(row["high"] for row in last),
        min(row["high"] for row in before) - max(row["low"] for row in last),
    )
