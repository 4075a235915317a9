"""The paper's claims about starts, on the task that was measured."""

from __future__ import annotations

from dataclasses import replace

from microtome.experiments.kit.answer import above, answer, judged, opposite
from microtome.experiments.kit.learning import constant_of
from microtome.experiments.kit.seed_curves import said
from microtome.experiments.kit.wording import percent
from microtome.experiments.kovaleva.initialization.report import difference, runs_of, values_of
from microtome.papers.answer import Answer
from microtome.statistics import over_seeds
from microtome.views import TidyRows

BELOW_IN_THE_PAPER = ("stsb", "qnli")  # random starts end below the pre-trained model alone


def claims(rows: TidyRows) -> dict[str, Answer]:
    """What fine-tuning gains over untrained heads, and where a random start ends.

    The gain holds where its interval over seeds is above 0, and decides nothing where a constant
    answer does as well as the fine-tuned model. A random start below the pre-trained model alone
    holds where that difference's interval is below 0, and decides nothing in the same case; nor
    does one that is compared with the fine-tuned model.
    """
    gain = difference(rows, "finetuned", "pretrained")
    constant = _constant_answer(rows)
    holds = None if constant else above(gain, 0.0)
    random = difference(rows, "random", "pretrained")
    falls = None if constant else opposite(above(random, 0.0))
    below = replace(answer(falls, said(random), random), learnt=not constant)
    start = difference(rows, "random", "finetuned")
    lower = None if constant else opposite(above(start, 0.0))
    words = f"{said(gain)} on this task against untrained heads{constant}"
    return {
        "gain": replace(answer(holds, words, gain), learnt=not constant),
        "start": replace(answer(lower, f"{said(start)}{constant}", start), learnt=not constant),
        "random": judged(below, rows, BELOW_IN_THE_PAPER),
    }


def _constant_answer(rows: TidyRows) -> str:
    """Words for a fine-tuning that isn't sure to be better than a constant answer, over its seeds.

    The better one of two: the commonest training label, and the best answer to the measured rows.
    """
    runs = runs_of(rows, "finetuned")
    known = [*values_of(rows, "majority"), constant_of(runs)]
    constant = max((value for value in known if value is not None), default=None)
    if constant is None:
        return ""
    lead = over_seeds([run["value"] - constant for run in runs])
    if (lead.value if lead.interval is None else lead.interval.low) > 0:
        return ""
    words = "is as good" if lead.value <= 0 else "is indistinguishable from it"
    return f", but a constant answer {words} ({percent(constant)})"
