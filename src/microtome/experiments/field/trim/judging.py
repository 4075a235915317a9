"""What a cut is worth: picked on one half of the rows, scored on the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome.experiments.kit.measured import Measured
from microtome.experiments.kit.paired_comparison import Clusters, Outcome, compare, score_interval
from microtome.experiments.kit.stored_predictions import Indices, on_rows, score_on
from microtome.experiments.kit.trial_inputs import opened_model, opened_rows
from microtome.runs import Context
from microtome.statistics import Interval, halves
from microtome.tasks import Dataset
from microtome.tasks.scoring.masked_tokens import MASKED_ACCURACY


@dataclass(frozen=True)
class Halves:
    """The rows that pick a cut, and those that score it; clusters stay together."""

    picking: Indices
    scoring: Indices
    clusters: Clusters

    @classmethod
    def of(cls, n_rows: int, clusters: Clusters) -> Halves:
        """Always the same halves of the same rows, whatever the seed of the healing."""
        (picking,) = halves(n_rows, clusters=clusters, n_splits=1)
        return cls(np.flatnonzero(picking), np.flatnonzero(~picking), clusters)

    def columns(self, found: Outcome, base: Outcome, metric: str) -> dict[str, Any]:
        """A cut's score and its change from the base, on the rows that score and on the others.

        ``pick_low`` is the lower end of its change on the rows that pick: what a choice looks at.
        """
        picked = self._change(found, base, self.picking)
        change, scored = self._change(found, base, self.scoring), on_rows(found, self.scoring)
        score = score_interval(scored, self._clusters(self.scoring), metric=metric)
        return {
            "metric": metric, "primary": metric, "value": score.value, "value_low": score.low,
            "value_high": score.high, "delta": change.value, "low": change.low,
            "high": change.high, "n": change.n, "pick_value": score_on(found, self.picking),
            "pick_delta": picked.value, "pick_low": picked.low,
        }  # fmt: skip

    def _change(self, found: Outcome, base: Outcome, rows: Indices) -> Interval:
        clusters = self._clusters(rows)
        return compare(on_rows(found, rows), on_rows(base, rows), clusters).difference

    def _clusters(self, rows: Indices) -> Clusters:
        return None if self.clusters is None else self.clusters[rows]


class HalvedRows(Measured):
    """A model and its rows in two halves, scored by the one metric that is shown."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, dataset: Dataset,
        metric: str | None,
    ) -> None:  # fmt: skip
        super().__init__(model, tokenizer, dataset)
        self.metric: str = metric or dataset.task.primary or MASKED_ACCURACY
        self.halves = Halves.of(dataset.n_scored, dataset.scored_clusters)

    @classmethod
    def opened(cls, request: Mapping[str, Any], context: Context) -> HalvedRows:
        """The model and the rows of a trial."""
        return cls(*opened_model(context), opened_rows(request, context), request.get("metric"))

    def to_screen(self, n_rows: int) -> HalvedRows:
        """The same model on at most so many of the rows that pick."""
        picking = self.halves.picking
        if self.dataset.n_scored < len(self.dataset):  # a query's passages are scored as one
            queries = self.dataset.clusters
            assert queries is not None
            scored = np.unique(queries[self.dataset.targets > 0])
            picking = np.flatnonzero(np.isin(queries, scored[picking]))
        rows = self.dataset.select(picking).limit(n_rows, seed=0)
        return HalvedRows(self.model, self.tokenizer, rows, self.metric)

    def score(self, answers: NDArray[Any]) -> float:
        """The score of some answers on all rows."""
        return score_on(self.outcome(answers, self.metric))

    def columns(self, answers: NDArray[Any], base: NDArray[Any]) -> dict[str, Any]:
        """What some answers score, and how that differs from the base's: see ``Halves``."""
        found, whole = (self.outcome(each, self.metric) for each in (answers, base))
        return self.halves.columns(found, whole, self.metric)


def mark_frontier(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with ``on_frontier``: no other is as fast or faster and better on picking rows."""
    return [{**row, "on_frontier": not any(_beats(other, row) for other in rows)} for row in rows]


def _beats(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    ours, theirs = one["pick_value"], other["pick_value"]
    if one["layers"] < other["layers"]:
        return bool(ours >= theirs)
    return bool(one["layers"] == other["layers"] and ours > theirs)
