"""The paper's claims in a replication: answered for every model and task, and over all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from microtome.experiments import find_experiment
from microtome.experiments.kit.answer import all_of, verdict
from microtome.experiments.kit.head_tables import name_of as head_name
from microtome.experiments.kit.learning import has_learnt
from microtome.experiments.kit.wording import change, counted
from microtome.experiments.kovaleva.frame_relations.claims import NEGLIGIBLE
from microtome.experiments.kovaleva.frame_relations.report import linked_heads
from microtome.experiments.kovaleva.head_disabling.report import baseline_of, single_heads
from microtome.experiments.kovaleva.initialization.claims import beats_constant
from microtome.experiments.kovaleva.token_links.report import follows_link, links_in, of_link
from microtome.papers.answer import CANT_TELL, DOESNT_HOLD, HOLDS, Answer
from microtome.papers.claims import CLAIMS, Claim
from microtome.papers.comparison import Reported, of_claim
from microtome.papers.exhibit import Exhibit
from microtome.replication.drawings.singh import with_reinitialized
from microtome.replication.measured import Measured, name_of

Pair = tuple[str, str]  # a model and a task
Answers = Mapping[Pair, Answer]
KNOWN = {(claim.experiment, claim.key): claim for claim in CLAIMS}
OVERLAP = "overlap"


@dataclass(frozen=True)
class Judgement:
    """What is measured of a claim: on a model and a task, or on several of them together."""

    claim: Claim
    answer: Answer
    model: str = ""
    task: str = ""

    @property
    def about(self) -> str:
        """Which model and task, in words."""
        names = " on ".join(filter(None, (self.model and name_of(self.model), self.task)))
        return names or "together"

    def as_json(self) -> dict[str, object]:
        """As ``replicate --json`` prints it."""
        return {
            "experiment": self.claim.experiment,
            "key": self.claim.key,
            "model": self.model,
            "task": self.task,
            "paper": self.claim.words,
            "measured": self.answer.words,
            "value": self.answer.value,
            "low": self.answer.low,
            "high": self.answer.high,
            "verdict": self.answer.verdict,
        }

    def reported(self) -> Reported:
        """As a line of the report's table."""
        return replace(of_claim(self.claim, self.answer), about=self.about)


def judgements(measured: Measured, exhibit: Exhibit, everyone: Measured) -> list[Judgement]:
    """Every claim of an exhibit: over all models and tasks first, where that has a rule.

    ``everyone`` are the exhibit's tasks with all models, those that it doesn't show among them. A
    claim that nothing here is about, such as one of BERT-large, is left out.
    """
    lines: list[Judgement] = []
    for experiment, key in exhibit.claims:
        claim = KNOWN[experiment, key]
        single = _single(everyone, experiment, key)
        if (pooled := together(claim, everyone)) is not None:
            lines.append(pooled)
        lines += [
            Judgement(claim, found, model, task)
            for (model, task), found in single.items()
            if model in measured.stacks
        ]
    return lines


def together(claim: Claim, measured: Measured) -> Judgement | None:
    """A claim over all models and tasks; None where it has no rule, or there is only one."""
    pool = POOLED.get((claim.experiment, claim.key))
    if pool is None:
        return None
    answer = pool(measured, _single(measured, claim.experiment, claim.key))
    return None if answer is None else Judgement(claim, answer)


def _single(measured: Measured, experiment: str, key: str) -> Answers:
    return {
        (model, task): found[key]
        for model, task, _ in measured.pairs(experiment)
        if key in (found := answers_of(measured, experiment, model, task))
    }


def answers_of(measured: Measured, experiment: str, model: str, task: str) -> Mapping[str, Answer]:
    """The claims of an experiment on a model and a task; probes know the re-initialised layers."""
    rows = measured.of(experiment, model, task)
    if experiment == "frozen-probing":
        rows = tuple(with_reinitialized(rows, measured.of("reinitialization", model, task)))
    return find_experiment(experiment).claims(rows)


def most_models(measured: Measured, single: Answers) -> Answer | None:
    """Holds where it does for more than half of the models, doesn't where it doesn't for half."""
    if len(single) < 2:
        return None
    verdicts = [found.verdict for found in single.values()]
    n_holds, n_not = verdicts.count(HOLDS), verdicts.count(DOESNT_HOLD)
    half = len(verdicts) / 2
    holds = True if n_holds > half else False if n_not >= half else None
    words = (
        f"holds for {n_holds or 'none'} of {len(verdicts)} models, doesn't for {n_not or 'none'}"
    )
    ends = (n_holds / len(verdicts), 1 - n_not / len(verdicts))
    return Answer(words, verdict(holds), n_holds / len(verdicts), *ends, unit="%")


def every_task(measured: Measured, single: Answers) -> Answer | None:
    """Holds where it does on every task, doesn't where it doesn't on one.

    Tasks that the claim isn't about have no verdict, and are left out.
    """
    judged = {pair: found for pair, found in single.items() if found.verdict is not None}
    if len(judged) < 2:
        return None
    votes = [
        None if found.verdict == CANT_TELL else found.verdict == HOLDS for found in judged.values()
    ]
    fails = [f"{name_of(m)} on {t}" for (m, t), f in judged.items() if f.verdict == DOESNT_HOLD]
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


def average_gain(measured: Measured, single: Answers) -> Answer | None:
    """As ``average``; decides nothing where no fine-tuning has learnt its task."""
    found = average(measured, single)
    tuned = (measured.of("initialization", model, task) for model, task in single)
    if found is None or any(map(beats_constant, tuned)):
        return found
    return replace(found, words=f"{found.words}; none has learnt its task", verdict=CANT_TELL)


def same_heads(measured: Measured, single: Answers) -> Answer | None:
    """Heads that follow words of both sentences in every task that has pairs, model by model.

    Holds where every model has one, doesn't where none has.
    """
    words, found = [], []
    for model in measured.models:
        by_task = {
            task: _following(rows)
            for own, task, rows in measured.pairs("token-links")
            if own == model and any(link == OVERLAP for link, _ in links_in(rows))
        }
        if len(by_task) < 2:
            continue
        heads = sorted(set.intersection(*by_task.values()))
        found.append(bool(heads))
        listed = ", ".join(heads[:5]) or "none"
        words.append(f"{name_of(model)} in {' and '.join(by_task)}: {len(heads)} ({listed})")
    if not found:
        return None
    holds = True if all(found) else None if any(found) else False
    return Answer(f"the same heads, {'; '.join(words)}", verdict(holds))


def _following(rows: Sequence[Mapping[str, object]]) -> set[str]:
    which = next(link for link in links_in(rows) if link[0] == OVERLAP)
    return {head_name(row) for row in of_link(rows, *which) if follows_link(row)}


def frame_heads_disabled(measured: Measured, single: Answers) -> Answer | None:
    """The pre-trained model's frame heads, disabled in the fine-tuned ones, one at a time.

    Holds where each is sure to cost less than a point on every task that was learnt; doesn't hold
    where one lowers a score, after correction for all heads of the model.
    """
    costs = []
    for model, task, rows in measured.pairs("head-disabling"):
        heads = {head_name(row) for row in linked_heads(measured.of("frame-relations", model))}
        if has_learnt([baseline_of(rows)]):
            costs += [(task, row) for row in single_heads(rows) if head_name(row) in heads]
    if not costs:
        return Answer("no head follows frame relations in a model that has learnt", CANT_TELL)
    needed = [row for _, row in costs if row["delta"] < 0 and row["p_holm"] <= 0.05]
    task, worst = min(costs, key=lambda each: each[1]["delta"])
    negligible = all(row["low"] > -NEGLIGIBLE for _, row in costs)
    holds = False if needed else True if negligible else None
    ends = (worst["delta"], worst["low"], worst["high"])
    words = (
        f"of {counted(len(costs), 'head and task pair')}, {len(needed) or 'none'} lowers the score;"
        f" the largest loss is {change(*ends)}, head {head_name(worst)} on {task}"
    )
    return Answer(words, verdict(holds), *ends)


POOLED: Mapping[tuple[str, str], Callable[[Measured, Answers], Answer | None]] = {
    ("decoding", "inner depths"): most_models,
    ("decoding", "control"): most_models,
    ("decoding", "fine-tuned"): most_models,
    ("duplication", "gain"): every_task,
    ("ensembling", "ensembles"): most_models,
    ("reinitialization", "last layers"): every_task,
    ("frozen-probing", "peak"): every_task,
    ("weight-drift", "depth"): every_task,
    ("attention-patterns", "heterogeneous"): every_task,
    ("attention-drift", "layers"): every_task,
    ("initialization", "gain"): average_gain,
    ("linguistic-features", "special"): every_task,
    ("token-links", "overlap"): same_heads,
    ("frame-relations", "importance"): frame_heads_disabled,
    ("head-disabling", "best head"): average,
    ("head-disabling", "some heads"): every_task,
}
