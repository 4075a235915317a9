"""The paper's claims over several models and tasks: a rule for each that has one.

A model that hasn't learnt its task decides nothing: its answers are left out, and counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from microtome.experiments.kao.decoding.report import curve_rows, half_as_deep_again
from microtome.experiments.kit.answer import all_of, unlearnt, verdict
from microtome.experiments.kit.head_tables import name_of as head_name
from microtome.experiments.kit.learning import has_learnt
from microtome.experiments.kit.wording import change, counted
from microtome.experiments.kovaleva.frame_relations.claims import NEGLIGIBLE
from microtome.experiments.kovaleva.frame_relations.report import linked_heads
from microtome.experiments.kovaleva.head_disabling.report import baseline_of, single_heads
from microtome.experiments.kovaleva.token_links.report import follows_link, links_in, of_link
from microtome.papers.answer import CANT_TELL, DOESNT_HOLD, HOLDS, Answer
from microtome.replication.measured import Measured, name_of

Pair = tuple[str, str]  # a model and a task
Answers = Mapping[Pair, Answer]
OVERLAP = "overlap"
XLARGE = "xlarge"  # in the names of ALBERT-xlarge and -xxlarge


def pooled(experiment: str, key: str, measured: Measured, single: Answers) -> Answer | None:
    """A claim over all models and tasks; None where it has no rule, or there is only one.

    Tasks that the claim isn't about have no verdict, and are left out; so are models that haven't
    learnt their task. Fewer than two that have can't tell.
    """
    if (over_rows := OVER_ROWS.get((experiment, key))) is not None:
        return over_rows(measured)
    rule = POOLED.get((experiment, key))
    judged = {pair: found for pair, found in single.items() if found.verdict is not None}
    if rule is None or len(judged) < 2:
        return None
    learnt = {pair: found for pair, found in judged.items() if found.learnt}
    if len(learnt) < 2:
        return unlearnt(
            f"{len(learnt) or 'none'} of {counted(len(judged), 'model and task pair')} has learnt"
            " its task"
        )
    found = rule(measured, learnt)
    return None if found is None else _counted(found, len(learnt), len(judged))


def _counted(found: Answer, n_learnt: int, n_pairs: int) -> Answer:
    """An answer that says how many pairs it is about, where some were left out."""
    if n_learnt == n_pairs:
        return found
    others = (
        "the other hasn't learnt its task"
        if n_pairs - n_learnt == 1
        else "the others haven't learnt their task"
    )
    words = f"{found.words} ({n_learnt} of {n_pairs} model and task pairs; {others})"
    return replace(found, words=words)


def most_models(measured: Measured, single: Answers) -> Answer | None:
    """Holds where it does for more than half of the models, doesn't where it doesn't for half.

    For a model it does where it does on all of its tasks.
    """
    by_model: dict[str, list[bool | None]] = {}
    for (model, _), found in single.items():
        vote = None if found.verdict == CANT_TELL else found.verdict == HOLDS
        by_model.setdefault(model, []).append(vote)
    verdicts = [verdict(all_of(votes)) for votes in by_model.values()]
    n_holds, n_not = verdicts.count(HOLDS), verdicts.count(DOESNT_HOLD)
    half = len(verdicts) / 2
    holds = True if n_holds > half else False if n_not >= half else None
    words = (
        f"holds for {n_holds or 'none'} of {len(verdicts)} models, doesn't for {n_not or 'none'}"
    )
    ends = (n_holds / len(verdicts), 1 - n_not / len(verdicts))
    return Answer(words, verdict(holds), n_holds / len(verdicts), *ends, unit="%")


def every_task(measured: Measured, single: Answers) -> Answer | None:
    """Holds where it does on every task, doesn't where it doesn't on one."""
    votes = [
        None if found.verdict == CANT_TELL else found.verdict == HOLDS for found in single.values()
    ]
    fails = [f"{name_of(m)} on {t}" for (m, t), f in single.items() if f.verdict == DOESNT_HOLD]
    words = f"holds on {votes.count(True) or 'none'} of {len(votes)} models and tasks"
    if fails:
        words += f", doesn't on {', '.join(fails)}"
    return Answer(words, verdict(all_of(votes)), votes.count(True) / len(votes), unit="%")


def average(measured: Measured, single: Answers) -> Answer | None:
    """The mean over tasks and models, with the interval that the single ones give it.

    Holds where that is above 0. Tasks without an interval decide nothing.
    """
    values = [found.value for found in single.values() if found.value is not None]
    if len(values) < 2:
        return None
    mean = sum(values) / len(values)
    ends = [(f.low, f.high) for f in single.values() if f.low is not None and f.high is not None]
    over = f"mean of {counted(len(values), 'model and task pair')}"
    if len(ends) < len(values):
        return Answer(f"{change(mean)}, {over}; some have too few seeds", CANT_TELL, mean)
    reach = math.sqrt(sum(((high - low) / 2) ** 2 for low, high in ends)) / len(ends)
    low, high = mean - reach, mean + reach
    holds = True if low > 0 else False if high < 0 else None
    return Answer(f"{change(mean, low, high)}, {over}", verdict(holds), mean, low, high)


def same_heads(measured: Measured, single: Answers) -> Answer | None:
    """Heads that follow words of both sentences in every task that has pairs, model by model.

    Holds where every model has one; that none has can't tell.
    """
    words, found = [], []
    for model in measured.models:
        by_task = {
            task: _following(measured.of("token-links", model, task))
            for own, task in single
            if own == model
        }
        if len(by_task) < 2:
            continue
        heads = sorted(set.intersection(*by_task.values()))
        found.append(bool(heads))
        listed = ", ".join(heads[:5]) or "none"
        words.append(f"{name_of(model)} in {' and '.join(by_task)}: {len(heads)} ({listed})")
    if not found:
        return None
    holds = True if all(found) else None
    return Answer(f"the same heads, {'; '.join(words)}", verdict(holds))


def _following(rows: Sequence[Mapping[str, object]]) -> set[str]:
    which = next(link for link in links_in(rows) if link[0] == OVERLAP)
    return {head_name(row) for row in of_link(rows, *which) if follows_link(row)}


def frame_heads_disabled(measured: Measured) -> Answer:
    """The pre-trained model's frame heads, disabled in the fine-tuned ones, one at a time.

    Holds where each is sure to cost less than a point on every task that was learnt; doesn't hold
    where one lowers a score, after correction for all heads of the model.
    """
    costs, n_pairs, n_learnt = [], 0, 0
    for model, task, rows in measured.pairs("head-disabling"):
        heads = {head_name(row) for row in linked_heads(measured.of("frame-relations", model))}
        if not heads:
            continue
        n_pairs += 1
        if has_learnt([baseline_of(rows)]):
            n_learnt += 1
            costs += [(task, row) for row in single_heads(rows) if head_name(row) in heads]
    if not costs:
        return unlearnt("no head follows frame relations in a model that has learnt")
    needed = [row for _, row in costs if row["delta"] < 0 and row["p_holm"] <= 0.05]
    task, worst = min(costs, key=lambda each: each[1]["delta"])
    negligible = all(row["low"] > -NEGLIGIBLE for _, row in costs)
    holds = False if needed else True if negligible else None
    ends = (worst["delta"], worst["low"], worst["high"])
    words = (
        f"of {counted(len(costs), 'head and task pair')}, {len(needed) or 'none'} lowers the score;"
        f" the largest loss is {change(*ends)}, head {head_name(worst)} on {task}"
    )
    return _counted(Answer(words, verdict(holds), *ends), n_learnt, n_pairs)


def larger_ones_drop(measured: Measured) -> Answer | None:
    """What half as many layers again cost the last state: ALBERT-xlarge and -xxlarge, and smaller.

    Holds where each of the large ones is sure to lose more than every other on the same task,
    doesn't hold where one is sure to lose less than one of them.
    """
    votes, words = [], []
    for task in measured.tasks:
        lost = {
            model: drop
            for model in measured.models
            if measured.stacks[model]["shared"]
            and (drop := _drop(measured.of("decoding", model, task))) is not None
        }
        large = {model: drop for model, drop in lost.items() if XLARGE in model.lower()}
        others = [drop for model, drop in lost.items() if model not in large]
        for model, (value, low, high) in large.items() if others else ():
            more = low > max(drop[2] for drop in others)
            less = high < max(drop[1] for drop in others)
            votes.append(True if more else False if less else None)
            most = max(drop[0] for drop in others)
            words.append(
                f"{name_of(model)} on {task}: {change(-value, -high, -low)}, of the others at most"
                f" {change(-most)}"
            )
    return Answer("; ".join(words), verdict(all_of(votes))) if votes else None


def _drop(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float, float] | None:
    """What the last state loses with half as many layers again, with its ends; None if unknown."""
    deeper = half_as_deep_again(rows) if rows else None
    if deeper is None:
        return None
    last = curve_rows(rows)[-1]
    return (
        last["accuracy"] - deeper["accuracy"],
        last["low"] - deeper["high"],
        last["high"] - deeper["low"],
    )


OVER_ROWS: Mapping[tuple[str, str], Callable[[Measured], Answer | None]] = {
    ("decoding", "xlarge"): larger_ones_drop,
    ("frame-relations", "importance"): frame_heads_disabled,
}
POOLED: Mapping[tuple[str, str], Callable[[Measured, Answers], Answer | None]] = {
    ("decoding", "inner depths"): most_models,
    ("decoding", "control"): most_models,
    ("decoding", "fine-tuned"): most_models,
    ("duplication", "gain"): most_models,
    ("ensembling", "ensembles"): most_models,
    ("reinitialization", "last layers"): every_task,
    ("frozen-probing", "peak"): every_task,
    ("weight-drift", "depth"): every_task,
    ("attention-patterns", "heterogeneous"): every_task,
    ("attention-drift", "layers"): every_task,
    ("initialization", "gain"): average,
    ("initialization", "start"): every_task,
    ("linguistic-features", "special"): every_task,
    ("token-links", "overlap"): same_heads,
    ("head-disabling", "best head"): average,
    ("head-disabling", "some heads"): every_task,
}
