"""The paper's claims about frame relations: a few heads follow them, and no task needs those."""

from __future__ import annotations

from microtome.experiments.kit.head_tables import name_of
from microtome.experiments.kit.wording import CANT_TELL, DOESNT_HOLD, HOLDS, change, counted
from microtome.experiments.kovaleva.frame_relations.report import (
    forward,
    linked_heads,
    model_not_learnt,
)
from microtome.views import TidyRows

FEW = 0.05  # the share of heads up to which they "stand out"
NEGLIGIBLE = 0.01  # a loss that a task doesn't notice


def claims(rows: TidyRows) -> dict[str, str]:
    """How many heads, and whether the task needs them."""
    linked = linked_heads(rows)
    answers = {"heads": _heads(rows)}
    if disabled := [row for row in linked if row["delta"] is not None]:
        answers["importance"] = model_not_learnt(disabled) or _importance(disabled)
    return answers


def _heads(rows: TidyRows) -> str:
    forwards, linked = forward(rows), linked_heads(rows)
    if not linked:
        n_exemplars = counted(forwards[0]["n"], "exemplar")
        return f"{CANT_TELL}: no head of {len(forwards)} beyond the offset over {n_exemplars}"
    verdict = HOLDS if len(linked) / len(forwards) <= FEW else DOESNT_HOLD
    names = ", ".join(name_of(row) for row in linked[:5])
    return f"{verdict}: {len(linked)} of {len(forwards)} beyond the offset ({names})"


def _importance(rows: TidyRows) -> str:
    needed = [row for row in rows if row["delta"] < 0 and row["delta_p_holm"] <= 0.05]
    worst = min(rows, key=lambda row: row["delta"])
    all_negligible = all(row["delta_low"] > -NEGLIGIBLE for row in rows)
    lower = "lower" if len(needed) > 1 else "lowers"
    verdict = DOESNT_HOLD if needed else HOLDS if all_negligible else CANT_TELL
    return (
        f"{verdict}: of {counted(len(rows), 'head')} disabled one at a time,"
        f" {len(needed) or 'none'} {lower} the {worst['metric']}; the largest loss is"
        f" {change(worst['delta'], worst['delta_low'], worst['delta_high'])}, head {name_of(worst)}"
    )
