"""The score of an edited model on the rows, against the base's on the same rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

from numpy.typing import NDArray
from transformers import PreTrainedModel

from microtome.experiments.kit.measured import Measured
from microtome.experiments.kit.paired_comparison import compare, score_interval
from microtome.explorer.passes import SharedPasses
from microtome.observe.outcomes import answers_in
from microtome.observe.speed import padded, seconds_by_turns
from microtome.statistics import Interval

TURNS = 7  # single texts that base and edited model are timed on
Step = Callable[[int, int], None]


class Scorer:
    """Rows, and what the base scores on them; every edited model is compared with that."""

    def __init__(self, measured: Measured) -> None:
        self.measured = measured
        self.passes = SharedPasses(measured.model, measured.encoded)
        self._base: tuple[NDArray[Any], dict[str, float]] | None = None
        self.metric = measured.dataset.task.primary or ""

    def score(self, edited: PreTrainedModel, step: Step) -> dict[str, Any]:
        """The scores of base and edited model, the paired change, the latency of one text."""
        started = time.perf_counter()
        measured, clusters = self.measured, self.measured.dataset.scored_clusters
        base_answers, base_score = self._base_scored(step)
        before = measured.outcome(base_answers, self.metric)
        now, change = base_score, (0.0, 0.0, 0.0)  # the base itself differs from it by nothing
        if edited is not measured.model:
            outcome = measured.outcome(self._answers(edited, step), self.metric)
            now = _ends(score_interval(outcome, clusters, metric=self.metric))
            found = compare(outcome, before, clusters).difference
            change = found.value, found.low, found.high
        step(1, 1)
        return {
            "metric": self.metric, "n": measured.dataset.n_scored, "base": base_score, "now": now,
            "change": change[0], "change_low": change[1], "change_high": change[2],
            "latency_ms": self._latencies(edited), "seconds": time.perf_counter() - started,
        }  # fmt: skip

    def _base_scored(self, step: Step) -> tuple[NDArray[Any], dict[str, float]]:
        if self._base is None:
            answers = self._answers(self.measured.model, step)
            found = self.measured.evaluation(answers)  # refuses rows that can't be measured
            self.metric = found.primary
            self._base = answers, _ends(found.scores[found.primary])
        return self._base

    def _answers(self, model: PreTrainedModel, step: Step) -> NDArray[Any]:
        output = self.passes.predict(model, step)
        return answers_in(model, self.measured.dataset, self.measured.encoded, output)

    def _latencies(self, edited: PreTrainedModel) -> dict[str, float]:
        """Milliseconds of one text as plain transformers runs it, by turns with the base."""
        base = self.measured.model
        singles = padded(self.measured.encoded, base, n_texts=TURNS, size=1)
        turns = seconds_by_turns([(base, singles), (edited, singles)], TURNS)
        return {
            name: 1000 * median(turn[side] for turn in turns)
            for side, name in enumerate(("base", "now"))
        }


def _ends(score: Interval) -> dict[str, float]:
    return {"value": score.value, "low": score.low, "high": score.high}
