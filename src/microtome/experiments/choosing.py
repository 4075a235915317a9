"""Choosing sets of heads on some rows and scoring them on others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from microtome.evaluation import encode_for, outcome, scored
from microtome.experiments.comparing import Outcome, as_metric, compare
from microtome.experiments.subject import opened_rows, opened_unshared
from microtome.observe import sweep
from microtome.runs import Context
from microtome.statistics import Interval, value_of
from microtome.statistics.selection import HALF_LEVEL

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from microtome.tasks import Dataset, Encoded

SIZES = (1, 2, 4, 8, 16)
HeadSet = tuple[str, ...]
Indices = NDArray[np.int64]


@dataclass
class HeadSets:
    """Single heads whose logits are stored, and sets of them that are computed when asked for."""

    model: PreTrainedModel
    dataset: Dataset
    encoded: Encoded
    metric: str
    how: Any
    first: str  # the edit before all others: unshare() where layers share their weights
    singles: dict[str, Outcome]
    baseline: Outcome
    known: dict[HeadSet, Outcome] = field(default_factory=dict)

    @classmethod
    def opened(cls, request: Mapping[str, Any], context: Context) -> HeadSets:
        """From a trial that needs the chunks of a sweep."""
        model, tokenizer, first = opened_unshared(context)
        dataset = opened_rows(request, context)
        encoded = encode_for(model, tokenizer, dataset)
        metric = dataset.task.primary
        assert metric is not None
        stored = stored_sweep(context)

        def answers(logits: NDArray[Any]) -> Outcome:
            return outcome(dataset, scored(model, dataset, encoded, logits), metric)

        singles = {
            str(name): answers(logits)
            for part in stored
            for name, logits in zip(part["targets"], part["logits"], strict=True)
            if not str(name).endswith("*")
        }
        baseline = answers(stored[0]["baseline"])
        return cls(model, dataset, encoded, metric, request["how"], first, singles, baseline)

    @property
    def base_value(self) -> float:
        """The score without any edit."""
        return value_of(as_metric(self.baseline))

    def choose(self, rows: Indices) -> HeadSet:
        """The best of the leading sets on these rows; no head at all where none helps."""
        gains = {name: self._gain_on(found, rows) for name, found in self.singles.items()}
        ranked = sorted(gains, key=lambda name: -gains[name])
        helping = [name for name in ranked if gains[name] >= 0]
        sets = {tuple(sorted(helping[:size])) for size in SIZES if size <= len(helping)}
        scores = {heads: self._gain_on(self.outcome(heads), rows) for heads in sorted(sets)}
        best = max(scores, key=lambda heads: scores[heads], default=())
        return best if scores.get(best, 0.0) > 0 else ()

    def gain(self, heads: HeadSet, rows: Indices) -> Interval:
        """The paired interval of a set's gain on rows that it wasn't chosen on."""
        base, changed = _on(self.baseline, rows), _on(self.outcome(heads), rows)
        clusters = None if self.dataset.clusters is None else self.dataset.clusters[rows]
        return compare(changed, base, clusters, level=HALF_LEVEL).difference

    def outcome(self, heads: HeadSet) -> Outcome:
        """The answers with a set of heads disabled; computed once."""
        if not heads:
            return self.baseline
        if len(heads) == 1:
            return self.singles[heads[0]]
        if heads not in self.known:
            logits = sweep(self.model, self.encoded, [list(heads)], how=self.how).logits[0]
            found = scored(self.model, self.dataset, self.encoded, logits)
            self.known[heads] = outcome(self.dataset, found, self.metric)
        return self.known[heads]

    def _gain_on(self, changed: Outcome, rows: Indices) -> float:
        base = value_of(as_metric(_on(self.baseline, rows)))
        return value_of(as_metric(_on(changed, rows))) - base


def stored_sweep(context: Context) -> list[Any]:
    """The chunks of a sweep among the needed trials; a fine-tuning has arrays of another kind."""
    found = [np.load(n.arrays, allow_pickle=False) for n in context.needs.values() if n.arrays]
    return [part for part in found if "targets" in part]


def _on(found: Outcome, rows: Indices) -> Outcome:
    """The same answers on some of the rows."""
    return found[rows] if isinstance(found, np.ndarray) else found.take(rows)
