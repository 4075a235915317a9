"""The paper's claims about frame relations: a few heads follow them, and no task needs those."""

from __future__ import annotations

from microtome.experiments.kit.answer import from_row, opposite, sure_above, unlearnt, verdict
from microtome.experiments.kit.head_tables import name_of
from microtome.experiments.kit.wording import change, counted
from microtome.experiments.kovaleva.frame_relations.report import (
    forward,
    linked_heads,
    model_not_learnt,
)
from microtome.papers.answer import CANT_TELL, Answer
from microtome.statistics.intervals import wilson
from microtome.views import TidyRows

FEW = 0.05  # the share of heads up to which they "stand out"
NEGLIGIBLE = 0.01  # a loss that a task doesn't notice


def claims(rows: TidyRows) -> dict[str, Answer]:
    """How many heads, and whether the task needs them."""
    linked = linked_heads(rows)
    answers = {"heads": _heads(rows)}
    if disabled := [row for row in linked if row["delta"] is not None]:
        why = model_not_learnt(disabled)
        answers["importance"] = unlearnt(why) if why else _importance(disabled)
    return answers


def _heads(rows: TidyRows) -> Answer:
    """Heads beyond the same offset without a link, corrected for looking at all of them.

    Holds where there are some, surely at most 5 % of all; doesn't hold where there are surely more.
    Where there is none, a few exemplars can't tell. The interval is Wilson's over heads.
    """
    forwards, linked = forward(rows), linked_heads(rows)
    ends = wilson(len(linked), len(forwards))
    shares = (len(linked) / len(forwards), ends.low, ends.high)
    if not linked:
        n_exemplars = counted(forwards[0]["n"], "exemplar")
        words = f"no head of {len(forwards)} beyond the offset over {n_exemplars}"
        return Answer(words, CANT_TELL, *shares, unit="%")
    names = ", ".join(name_of(row) for row in linked[:5])
    words = f"{len(linked)} of {len(forwards)} beyond the offset ({names})"
    holds = opposite(sure_above(ends.low, ends.high, FEW))
    return Answer(words, verdict(holds), *shares, unit="%")


def _importance(rows: TidyRows) -> Answer:
    """What disabling these heads costs, one at a time.

    Holds where every head is sure to cost less than a point; doesn't hold where one lowers the
    score, after correction for all that were disabled.
    """
    needed = [row for row in rows if row["delta"] < 0 and row["delta_p_holm"] <= 0.05]
    worst = min(rows, key=lambda row: row["delta"])
    all_negligible = all(row["delta_low"] > -NEGLIGIBLE for row in rows)
    lower = "lower" if len(needed) > 1 else "lowers"
    holds = False if needed else True if all_negligible else None
    columns = ("delta", "delta_low", "delta_high")
    words = (
        f"of {counted(len(rows), 'head')} disabled one at a time,"
        f" {len(needed) or 'none'} {lower} the {worst['metric']}; the largest loss is"
        f" {change(*(worst[column] for column in columns))}, head {name_of(worst)}"
    )
    return from_row(holds, words, worst, columns)
