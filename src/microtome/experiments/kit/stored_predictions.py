"""Stored logits and the rows they belong to: scores and outcomes without any model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.errors import RunError
from microtome.experiments.kit.paired_comparison import Outcome, as_metric
from microtome.models.building import outline
from microtome.models.tokenizers import load_tokenizer
from microtome.observe.evaluation import encode_for, outcome
from microtome.runs import Context
from microtome.statistics import value_of
from microtome.tasks import (
    Dataset,
    Evaluation,
    TaggedTexts,
    Windows,
    evaluate_embeddings,
    evaluate_logits,
    evaluate_spans,
    evaluate_tags,
)
from microtome.tasks.encoding.texts import EMBEDDED_KINDS
from microtome.tasks.scoring.ensembles import ensemble_logits, ensemble_spans
from microtome.training.recipe import recipe_for

Logits = NDArray[Any]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Judge:
    """Scores logits on one data set; questions and tags need their tokens and so a tokenizer."""

    dataset: Dataset
    encoded: Windows | TaggedTexts | None

    @classmethod
    def of(cls, dataset: Dataset, model: Path) -> Judge:
        """The judge of logits that a fine-tuning of ``model`` left on ``dataset``."""
        if dataset.task.kind not in ("spans", "tokens"):
            return cls(dataset, None)
        recipe = recipe_for(dataset.task)
        encoded = encode_for(
            outline(model),
            load_tokenizer(model),
            dataset,
            max_length=recipe.max_length,
            stride=recipe.stride,
        )
        assert isinstance(encoded, (Windows, TaggedTexts))
        return cls(dataset, encoded)

    @property
    def metric(self) -> str:
        """The task's primary metric."""
        assert self.dataset.task.primary is not None
        return self.dataset.task.primary

    @property
    def metrics(self) -> tuple[str, ...]:
        """All of the task's metrics, the primary one first."""
        return tuple(dict.fromkeys((self.metric, *self.dataset.task.metrics)))

    def check(self, logits: Logits) -> None:
        """Refuse logits of other rows."""
        n_wanted, what = len(self.dataset), "rows"
        if self.encoded is not None:
            n_wanted, what = len(self.encoded.ids), "tokens"
        elif self.dataset.corpus is not None:
            n_wanted, what = n_wanted + len(self.dataset.corpus.positions), "texts"
        elif self.dataset.task.kind == "similarity":
            n_wanted, what = 2 * n_wanted, "texts"
        if len(logits) != n_wanted:
            raise RunError(
                f"expected stored logits of {n_wanted} {what}, got {len(logits)}",
                "the rows are no longer those of the run",
            )

    def evaluation(self, logits: Logits) -> Evaluation:
        """All scores, with intervals."""
        self.check(logits)
        if isinstance(self.encoded, Windows):
            return evaluate_spans(self.dataset, self.encoded, logits[:, 0], logits[:, 1])
        # A fine-tuning puts a head's outputs into the task's order.
        names = dict(enumerate(self.dataset.task.labels))
        if self.encoded is not None:
            return evaluate_tags(self.dataset, self.encoded, logits, names)
        if self.dataset.task.kind in EMBEDDED_KINDS:
            return evaluate_embeddings(self.dataset, logits)
        return evaluate_logits(self.dataset, logits, names)

    def outcomes(self, logits: Logits) -> dict[str, Outcome]:
        """Every metric of the task, ready to be paired with another's."""
        found = self.evaluation(logits)
        return {name: outcome(self.dataset, found, name) for name in self.metrics}

    def ensemble(self, members: Sequence[Logits]) -> Logits:
        """Several models as one."""
        if isinstance(self.encoded, Windows):
            return ensemble_spans(self.encoded, members)
        return ensemble_logits(self.dataset.task, members)


def on_rows(found: Outcome, rows: Indices) -> Outcome:
    """The same answers on some of the rows."""
    return found[rows] if isinstance(found, np.ndarray) else found.take(rows)


def score_on(found: Outcome, rows: Indices | None = None) -> float:
    """The score, of all rows or of some."""
    return value_of(as_metric(found if rows is None else on_rows(found, rows)))


def stored_arrays(place: Path) -> dict[str, NDArray[Any]]:
    """What a trial stored in its ``.npz`` file, by name."""
    with np.load(place, allow_pickle=False) as stored:
        return dict(stored)


def stored_timings(context: Context) -> dict[int, Mapping[str, Any]]:
    """By the number of layers, what the needed trials measured of its speed."""
    summaries = (need.summary for need in context.needs.values())
    timings = [summary["timing"] for summary in summaries if "timing" in summary]
    return {timing["layers"]: timing for timing in timings}


def stored_logits(arrays: Path) -> Logits:
    """The logits that a fine-tuning kept."""
    found = stored_arrays(arrays)
    if "logits" not in found:
        raise RunError(f"{arrays} holds no logits")
    return found["logits"]
