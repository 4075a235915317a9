"""The stored answers and timings of all cuts of a model, as scores, prices and rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from microtome.edits import parse
from microtome.experiments.kao.layer_removal.cuts import Cut
from microtome.experiments.kit.paired_comparison import Outcome, baseline_row, compare
from microtome.experiments.kit.stored_predictions import stored_arrays, stored_timings
from microtome.experiments.kit.trial_inputs import opened_rows, opened_unshared
from microtome.families import adapt
from microtome.models.costs import cost
from microtome.observe.evaluation import encode_to_score
from microtome.observe.outcomes import evaluation_of, outcomes
from microtome.runs import Context
from microtome.surgery import apply
from microtome.tasks import Dataset, Encoded, Evaluation
from microtome.tasks.scoring.constant import answer_columns

CORRECTED = 0.05  # shared by all cuts that are looked at


@dataclass(frozen=True, eq=False)
class StoredCuts:
    """The stored answers of all cuts, as scores by every metric of the task.

    ``metric`` is the one that is shown, and that cuts are picked by.
    ``logits`` are by the layers that a cut removes, ``timings`` by the number of layers left.
    """

    model: PreTrainedModel
    dataset: Dataset
    encoded: Encoded
    metric: str
    first_edit: str
    logits: Mapping[str, NDArray[np.float32]]
    baseline_logits: NDArray[np.float32]
    timings: Mapping[int, Mapping[str, Any]]

    @classmethod
    def opened(
        cls, request: Mapping[str, Any], context: Context, dataset: Dataset | None = None
    ) -> StoredCuts:
        """From a trial that needs the answers of all cuts; ``dataset`` is the trial's own."""
        model, tokenizer, first_edit = opened_unshared(context)
        dataset = dataset or opened_rows(request, context)
        loaded = [stored_arrays(need.arrays) for need in context.needs.values() if need.arrays]
        stored = [arrays for arrays in loaded if "cuts" in arrays]
        logits = {
            str(name): answers
            for arrays in stored
            for name, answers in zip(arrays["cuts"], arrays["logits"], strict=True)
        }
        encoded = encode_to_score(model, tokenizer, dataset)
        rows, metric = (model, dataset, encoded), request["metric"]
        return cls(
            *rows, metric, first_edit, logits, stored[0]["baseline"], stored_timings(context)
        )

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every metric of the task, the shown one first."""
        return tuple(dict.fromkeys((self.metric, *self.dataset.task.metrics)))

    def evaluation(self, logits: NDArray[np.float32]) -> Evaluation:
        """The scores and predictions of some logits."""
        return evaluation_of(self.model, self.dataset, self.encoded, logits)

    @cached_property
    def baseline(self) -> Mapping[str, Outcome]:
        """The whole model's answers, by metric."""
        return outcomes(self.model, self.dataset, self.encoded, self.baseline_logits)

    @cached_property
    def outcomes(self) -> dict[str, Mapping[str, Outcome]]:
        """Every cut's answers, by the layers that it removes and by metric."""
        return {
            name: outcomes(self.model, self.dataset, self.encoded, logits)
            for name, logits in self.logits.items()
        }

    def edit_text(self, cut: Cut) -> str:
        """The edit that makes the cut; shared layers get weights of their own before it."""
        return f"{self.first_edit} | {cut.edit}" if self.first_edit else cut.edit

    def baseline_row(self, metric: str) -> dict[str, Any]:
        """The whole model: its score by a metric, its price, and the constant answer's score."""
        timing = next(iter(self.timings.values()), {})
        prices = {
            "speed": 1.0, "latency_ms": timing.get("base_latency_ms"),
            "batch_ms": timing.get("base_batch_ms"),
        }  # fmt: skip
        return {
            **baseline_row(self.baseline[metric], self.dataset, metric=metric),
            "primary": self.metric,
            "edit": self.first_edit, **self.sizes(self.model), **prices,
            **self.answer_columns(self.baseline_logits, metric),
        }  # fmt: skip

    def price(self, cut: Cut) -> dict[str, Any]:
        """What a cut weighs and takes: its parameters, and the speed of its number of layers."""
        timing = self.timings[len(cut.order)]
        timed = ("speed", "speed_low", "speed_high", "latency_ms", "batch_ms")
        edited = apply(parse(cut.edit), self.model)
        return {"edit": self.edit_text(cut), **self.sizes(edited)} | {
            name: timing[name] for name in timed
        }

    def sizes(self, model: PreTrainedModel) -> dict[str, Any]:
        """What a model weighs."""
        price = cost(model)
        return {
            "layers": adapt(model).shape.n_layers,
            "parameters": price.parameters,
            "flops_per_token": price.flops_per_token,
        }

    def answer_columns(self, logits: NDArray[np.float32], metric: str) -> dict[str, Any]:
        """Whether the answers differ at all, and what the best constant one scores."""
        return answer_columns(self.dataset, self.evaluation(logits), metric, self.encoded)

    def corrected_low(self, cut: Cut) -> float:
        """The lower end of a cut's change where all cuts are looked at together."""
        level = 1 - CORRECTED / len(self.outcomes)
        changed, base = self.outcomes[cut.name][self.metric], self.baseline[self.metric]
        return compare(changed, base, self.dataset.scored_clusters, level=level).difference.low
