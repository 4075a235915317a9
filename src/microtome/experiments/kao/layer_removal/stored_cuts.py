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
from microtome.experiments.kit.trial_inputs import opened_rows, opened_unshared
from microtome.families import adapt
from microtome.models.costs import cost
from microtome.observe.evaluation import encode_to_score, outcome, scored
from microtome.runs import Context
from microtome.surgery import apply
from microtome.tasks import Dataset, Encoded, Evaluation
from microtome.tasks.scoring.constant import answer_columns

CORRECTED = 0.05  # shared by all cuts that are looked at


@dataclass(frozen=True, eq=False)
class StoredCuts:
    """The stored answers of all cuts, as scores on the task's primary metric.

    ``logits`` are by the layers that a cut removes, ``timings`` by the number of layers left.
    """

    model: PreTrainedModel
    dataset: Dataset
    encoded: Encoded
    first_edit: str
    logits: Mapping[str, NDArray[np.float32]]
    baseline_logits: NDArray[np.float32]
    timings: Mapping[int, Mapping[str, Any]]

    @classmethod
    def opened(cls, request: Mapping[str, Any], context: Context) -> StoredCuts:
        """From a trial that needs the answers of all cuts, and their timings."""
        model, tokenizer, first_edit = opened_unshared(context)
        dataset = opened_rows(request, context)
        loaded = [np.load(n.arrays, allow_pickle=False) for n in context.needs.values() if n.arrays]
        stored = [arrays for arrays in loaded if "cuts" in arrays]
        logits = {
            str(name): answers
            for arrays in stored
            for name, answers in zip(arrays["cuts"], arrays["logits"], strict=True)
        }
        timings = {
            need.summary["timing"]["layers"]: need.summary["timing"]
            for need in context.needs.values()
            if "timing" in need.summary
        }
        encoded = encode_to_score(model, tokenizer, dataset)
        return cls(model, dataset, encoded, first_edit, logits, stored[0]["baseline"], timings)

    @property
    def metric(self) -> str:
        """The task's primary metric."""
        assert self.dataset.task.primary is not None
        return self.dataset.task.primary

    def evaluation(self, logits: NDArray[np.float32]) -> Evaluation:
        """The scores and predictions of some logits."""
        return scored(self.model, self.dataset, self.encoded, logits)

    def outcome(self, logits: NDArray[np.float32]) -> Outcome:
        """The primary metric of some logits, ready to be paired."""
        return outcome(self.dataset, self.evaluation(logits), self.metric)

    @cached_property
    def baseline(self) -> Outcome:
        """The whole model's answers."""
        return self.outcome(self.baseline_logits)

    @cached_property
    def outcomes(self) -> dict[str, Outcome]:
        """Every cut's answers, by the layers that it removes."""
        return {name: self.outcome(logits) for name, logits in self.logits.items()}

    def edit_text(self, cut: Cut) -> str:
        """The edit that makes the cut; shared layers get weights of their own before it."""
        return f"{self.first_edit} | {cut.edit}" if self.first_edit else cut.edit

    def baseline_row(self) -> dict[str, Any]:
        """The whole model: its score, its price, and the constant answer's score."""
        timing = next(iter(self.timings.values()), {})
        prices = {
            "speed": 1.0, "latency_ms": timing.get("base_latency_ms"),
            "batch_ms": timing.get("base_batch_ms"),
        }  # fmt: skip
        return {
            **baseline_row(self.baseline, self.dataset, metric=self.metric),
            "edit": self.first_edit, **self.sizes(self.model), **prices,
            **self.answer_columns(self.baseline_logits),
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

    def answer_columns(self, logits: NDArray[np.float32]) -> dict[str, Any]:
        """Whether the answers differ at all, and what the best constant one scores."""
        return answer_columns(self.dataset, self.evaluation(logits), self.metric, self.encoded)

    def corrected_low(self, cut: Cut) -> float:
        """The lower end of a cut's change where all cuts are looked at together."""
        level = 1 - CORRECTED / len(self.outcomes)
        changed = compare(
            self.outcomes[cut.name], self.baseline, self.dataset.clusters, level=level
        )
        return changed.difference.low
