"""The paper's two claims about starts, on the task that was measured."""

from __future__ import annotations

from microtome.experiments.kit.seed_curves import said
from microtome.experiments.kit.wording import above, judged, percent, verdict
from microtome.experiments.kovaleva.initialization.report import difference, values_of
from microtome.statistics import over_seeds
from microtome.views import TidyRows

BELOW_IN_THE_PAPER = ("stsb", "qnli")  # random starts end below the pre-trained model alone


def claims(rows: TidyRows) -> dict[str, str]:
    """What fine-tuning gains over untrained heads, and where a random start ends.

    The gain decides nothing where a constant answer does as well as the fine-tuned model.
    """
    gain = difference(rows, "finetuned", "pretrained")
    constant = _constant_answer(rows)
    holds = None if constant else above(gain, 0.0)
    random = difference(rows, "random", "pretrained")
    is_above = above(random, 0.0)
    is_below = None if is_above is None else not is_above
    return {
        "gain": f"{verdict(holds)}: {said(gain)} on this task against untrained heads{constant}",
        "random": judged(is_below, said(random), rows, BELOW_IN_THE_PAPER),
    }


def _constant_answer(rows: TidyRows) -> str:
    """Words for a fine-tuning that is no better than a constant answer, over its seeds."""
    constant = values_of(rows, "majority")
    if not constant:
        return ""
    lead = over_seeds([value - constant[0] for value in values_of(rows, "finetuned")])
    if (lead.value if lead.interval is None else lead.interval.low) > 0:
        return ""
    words = "is as good" if lead.value <= 0 else "is indistinguishable from it"
    return f", but a constant answer {words} ({percent(constant[0])})"
