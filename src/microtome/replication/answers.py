"""The paper's claims in a replication: answered for every model and task, and over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from microtome.experiments import find_experiment
from microtome.papers.answer import CANT_TELL, Answer
from microtome.papers.claims import CLAIMS, Claim
from microtome.papers.comparison import Reported, of_claim
from microtome.papers.exhibit import Exhibit
from microtome.replication.drawings.singh import with_reinitialized
from microtome.replication.measured import Measured, name_of
from microtome.replication.pooling import Answers, pooled

KNOWN = {(claim.experiment, claim.key): claim for claim in CLAIMS}
# Claims about fine-tuned models in whose rows no score is: whether these have learnt their tasks
# is known from the fine-tunings of the same replication.
ABOUT_FINE_TUNED = frozenset(
    {
        ("decoding", "fine-tuned"),
        ("weight-drift", "depth"),
        ("weight-drift", "data"),
        ("weight-drift", "cola"),
        ("attention-patterns", "heterogeneous"),
        ("attention-drift", "layers"),
        ("linguistic-features", "special"),
        ("linguistic-features", "features"),
        ("token-links", "cls"),
        ("token-links", "diagonal"),
        ("token-links", "overlap"),
    }
)


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
    experiment, key = claim.experiment, claim.key
    answer = pooled(experiment, key, measured, _single(measured, experiment, key))
    return None if answer is None else Judgement(claim, answer)


def of_all_exhibits(
    exhibits: Iterable[tuple[Measured, Sequence[Judgement]]], measured: Measured
) -> list[Judgement]:
    """Every judgement once, of exhibits with what they show: several may show a claim.

    What is said of all models and tasks together is of the tasks of all of these exhibits.
    """
    found: dict[Claim, dict[tuple[str, str], Judgement]] = {}
    shown: dict[Claim, dict[str, Mapping[str, Any]]] = {}
    for exhibit, lines in exhibits:
        for line in lines:
            found.setdefault(line.claim, {})[line.model, line.task] = line
            shown.setdefault(line.claim, {}).update(exhibit.sizes)
    every = []
    for claim, by_place in found.items():
        over_all = together(claim, replace(measured, sizes=shown[claim]))
        every += [] if over_all is None else [over_all]
        every += [line for line in by_place.values() if line.model]
    return every


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
    found = find_experiment(experiment).claims(rows)
    if not (why := measured.not_learnt(experiment, model, task)):
        return found
    return {
        key: _not_learnt(answer, why) if (experiment, key) in ABOUT_FINE_TUNED else answer
        for key, answer in found.items()
    }


def _not_learnt(answer: Answer, why: str) -> Answer:
    """The numbers of a fine-tuned model that hasn't learnt its task: they decide nothing."""
    judged = None if answer.verdict is None else CANT_TELL
    return replace(answer, words=f"{answer.words}; but {why}", verdict=judged, learnt=False)
