"""Sets of heads: their answers when disabled, chosen on some rows and scored on others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from microtome.experiments.kit.paired_comparison import Outcome, VariantSweep, compare
from microtome.experiments.kit.stored_predictions import on_rows, score_on
from microtome.experiments.kit.trial_inputs import opened_rows, opened_unshared
from microtome.observe.evaluation import encode_to_score
from microtome.observe.outcomes import evaluation_of, outcomes, swept_answers
from microtome.observe.targets import How
from microtome.runs import Context
from microtome.statistics import Interval
from microtome.statistics.selection import HALF_LEVEL
from microtome.tasks import Dataset, Encoded, Evaluation
from microtome.tasks.scoring.constant import gives_one_answer

SIZES = (1, 2, 4, 8, 16)
BASELINE = "baseline"
HeadSet = tuple[str, ...]
Indices = NDArray[np.int64]
Progress = Callable[[int, int], None]


def kind_of(target: str) -> str:
    """A head (3.7), a whole layer (3.*), or a set of heads (3.7 5.0)."""
    if " " in target:
        return "set"
    return "layer" if target.endswith("*") else "head"


@dataclass
class HeadSets:
    """A model's answers with heads disabled, by every metric of the task.

    ``answers`` are by target (baseline; 3.7; 3.*; 3.7 5.0), in the order of the sweep, and by
    metric; those that aren't stored are computed by :meth:`compute`. ``first_edit`` comes before
    all others: unshare() where layers share their weights, else empty.
    """

    model: PreTrainedModel
    dataset: Dataset
    encoded: Encoded
    metric: str  # the one that is shown, and that sets are chosen by
    how: How
    first_edit: str
    answers: dict[str, Mapping[str, Outcome]] = field(default_factory=dict)
    _put_out: dict[str, NDArray[Any]] = field(default_factory=dict)  # of all but single heads

    @classmethod
    def opened(cls, request: Mapping[str, Any], context: Context, dataset: Dataset) -> HeadSets:
        """Without any answers yet."""
        model, tokenizer, first_edit = opened_unshared(context)
        encoded = encode_to_score(model, tokenizer, dataset)
        return cls(model, dataset, encoded, request["metric"], request["how"], first_edit)

    @classmethod
    def of_sweep(
        cls, request: Mapping[str, Any], context: Context, dataset: Dataset | None = None
    ) -> HeadSets:
        """With the answers of the sweep that a trial needs; ``dataset`` is the trial's own."""
        sets = cls.opened(request, context, dataset or opened_rows(request, context))
        stored = stored_sweep(context)
        sets.keep([BASELINE], stored[0]["baseline"][None])
        for part in stored:
            sets.keep(part["targets"].tolist(), part["logits"])
        return sets

    def keep(self, targets: Sequence[str], answers: NDArray[Any]) -> None:
        """Score the answers (targets, …) of some targets."""
        for target, kept in zip(targets, answers, strict=True):
            self.answers[target] = outcomes(self.model, self.dataset, self.encoded, kept)
            if target == BASELINE or kind_of(target) != "head":
                self._put_out[target] = kept

    def answers_alike(self, target: str) -> bool | None:
        """Whether the model gives one answer only; single heads aren't looked at (None)."""
        if target not in self._put_out:
            return None
        return gives_one_answer(self.evaluation(target))

    def evaluation(self, target: str) -> Evaluation:
        """All scores with the target disabled; single heads aren't kept for it."""
        return evaluation_of(self.model, self.dataset, self.encoded, self._put_out[target])

    def compute(self, sets: Iterable[HeadSet], progress: Progress | None = None) -> None:
        """Answers with each set disabled, those that aren't there yet: one pass for all of them.

        Layers below a set's first head are shared by all sets.
        """
        missing = sorted({heads for heads in sets if heads and " ".join(heads) not in self.answers})
        if not missing and BASELINE in self.answers:
            return
        baseline, answers = swept_answers(
            self.model, self.dataset, self.encoded, missing, how=self.how, progress=progress
        )
        self.keep([BASELINE], baseline[None])
        self.keep([" ".join(heads) for heads in missing], answers)

    def variants(self, kind: str, metric: str) -> VariantSweep:
        """All heads, all layers, or all sets, against the baseline."""
        changed = {
            target: by_metric[metric]
            for target, by_metric in self.answers.items()
            if target != BASELINE and kind_of(target) == kind
        }
        return VariantSweep(changed, self.answers[BASELINE][metric], self.dataset.scored_clusters)

    def candidates(self, rows: Indices) -> list[HeadSet]:
        """The leading 1, 2, 4, … heads of those that don't hurt on these rows, best first."""
        heads = [name for name in self.answers if name != BASELINE and kind_of(name) == "head"]
        gains = {head: self._gain_on((head,), rows) for head in heads}
        ranked = sorted(gains, key=lambda head: -gains[head])
        helping = [head for head in ranked if gains[head] >= 0]
        return sorted({tuple(sorted(helping[:size])) for size in SIZES if size <= len(helping)})

    def choose(self, rows: Indices) -> HeadSet:
        """The best candidate on these rows; no head at all where none helps."""
        gains = {heads: self._gain_on(heads, rows) for heads in self.candidates(rows)}
        best = max(gains, key=lambda heads: gains[heads], default=())
        return best if gains.get(best, 0.0) > 0 else ()

    def gain(self, heads: HeadSet, rows: Indices) -> Interval:
        """The paired interval of a set's gain on rows that it wasn't chosen on."""
        base, changed = on_rows(self.outcome(()), rows), on_rows(self.outcome(heads), rows)
        clusters = self.dataset.scored_clusters
        groups = None if clusters is None else clusters[rows]
        return compare(changed, base, groups, level=HALF_LEVEL).difference

    def outcome(self, heads: HeadSet) -> Outcome:
        """What is answered with a set of heads disabled, by the metric that is shown."""
        return self.answers[" ".join(heads) or BASELINE][self.metric]

    def _gain_on(self, heads: HeadSet, rows: Indices) -> float:
        return score_on(self.outcome(heads), rows) - score_on(self.outcome(()), rows)


def stored_sweep(context: Context) -> list[Any]:
    """The chunks of a sweep among the needed trials; a fine-tuning has arrays of another kind."""
    stored = [
        np.load(need.arrays, allow_pickle=False) for need in context.needs.values() if need.arrays
    ]
    return [arrays for arrays in stored if "targets" in arrays]
