"""From what a model put out to scores: pure functions that any engine can feed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.errors import DataError, RequestError, RunError
from microtome.tasks.dataset import Dataset
from microtome.tasks.encoding.tagged import TaggedTexts
from microtome.tasks.encoding.windows import Windows
from microtome.tasks.reading.sources import FILE_SPLIT
from microtome.tasks.scoring.answered import (
    Answered,
    Outcome,
    answered_embeddings,
    answered_labels,
    answered_tags,
)
from microtome.tasks.scoring.answers import score_answer
from microtome.tasks.scoring.ranking import Similarity
from microtome.tasks.scoring.scores import Scores, as_json, scores_of, with_unlabelled
from microtome.tasks.scoring.spans import SpanChoice, best_spans
from microtome.tasks.task import UNIT_OF, answers_in

WITH_UNLABELLED = "accuracy_with_unlabelled"
"""SNLI's figure over all rows: those without a label count as wrong (98.24 % at most on test)."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of a model on a data set. ``predictions`` has one entry per row (tokens: per word).

    ``outcomes`` are the metrics as they are paired with another model's: a score for every row (of
    pairs to rerank: for every query), or a function of the rows' weights.
    ``thresholds`` (spans): the best no-answer threshold for each metric, and the score there.
    It was picked on these very rows, so it flatters. ``loss`` (a masked LM on plain text): nats per
    masked token. ``unit`` is what the counts of the scores count. ``constant_scores``, where they
    were looked at: what one constant answer scores, by metric.
    """

    task: str
    split: str
    primary: str
    scores: Scores
    notes: tuple[str, ...]
    predictions: NDArray[Any]
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    thresholds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    loss: float | None = None
    unit: str = "rows"
    constant_scores: Mapping[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """The part of ``evaluate --json`` that the data decides."""
        document: dict[str, object] = {
            "task": self.task,
            "split": self.split,
            "scores": {name: as_json(interval) for name, interval in self.scores.items()},
            "primary": self.primary,
            "constant_scores": dict(self.constant_scores),
            "notes": list(self.notes),
        }
        if self.loss is not None:
            document["loss"] = self.loss
        if self.thresholds:
            document["best_thresholds"] = {
                name: {"threshold": threshold, "value": value}
                for name, (threshold, value) in self.thresholds.items()
            }
        return document


def evaluate_logits(
    dataset: Dataset, logits: NDArray[Any], id2label: Mapping[int, str] | None = None
) -> Evaluation:
    """Scores of logits (n, k): classification, multilabel, regression (k = 1), reranking (1 or 2).

    ``id2label`` is the checkpoint's: its names say which output is which label of the task. Where
    they don't fit, outputs are taken by index, and a note says so.

    evaluate_logits(dataset, logits, model.config.id2label).scores["accuracy"]
    """
    _measurable(dataset)
    return evaluate_answered(dataset, answered_labels(dataset, logits, id2label))


def evaluate_tags(
    dataset: Dataset,
    encoded: TaggedTexts,
    logits: NDArray[Any],
    id2label: Mapping[int, str] | None = None,
) -> Evaluation:
    """Scores of a token head's logits (T, tags), flat as the tokens of ``encoded``."""
    _measurable(dataset)
    return evaluate_answered(dataset, answered_tags(dataset, encoded, logits, id2label))


def evaluate_embeddings(
    dataset: Dataset, embeddings: NDArray[Any], *, similarity: Similarity = "cosine"
) -> Evaluation:
    """Scores of embeddings: of pairs (2n, D), or of queries and then documents."""
    _measurable(dataset)
    return evaluate_answered(dataset, answered_embeddings(dataset, embeddings, similarity))


def evaluate_answered(dataset: Dataset, answered: Answered) -> Evaluation:
    """Scores of answers whose outcomes are known."""
    scores = scores_of(answered.outcomes, clusters=dataset.scored_clusters)
    if dataset.n_unlabelled and "accuracy" in scores:
        scores[WITH_UNLABELLED] = with_unlabelled(scores["accuracy"], dataset.n_unlabelled)
    return Evaluation(
        dataset.task.name,
        dataset.split,
        next(iter(answered.outcomes)),
        scores,
        dataset.notes + answered.notes,
        answered.predictions,
        answered.outcomes,
        unit=UNIT_OF.get(dataset.task.kind, "rows"),
    )


def evaluate_spans(
    dataset: Dataset,
    windows: Windows,
    start_logits: NDArray[np.floating],
    end_logits: NDArray[np.floating],
    *,
    threshold: float = 0.0,
) -> Evaluation:
    """Scores of start and end logits, flat (T,) as the windows' tokens.

    A question is left unanswered where [CLS] beats its best span by more than ``threshold``.
    """
    choices = _checked_spans(dataset, windows, start_logits, end_logits)
    return evaluate_choices(dataset, choices, threshold=threshold)


def answers_of(
    dataset: Dataset,
    windows: Windows,
    start_logits: NDArray[np.floating],
    end_logits: NDArray[np.floating],
) -> list[str]:
    """An answer for every question, ``""`` where [CLS] beats the best span, without scores."""
    texts, margin = _texts(dataset, _checked_spans(dataset, windows, start_logits, end_logits))
    return _answered(texts, margin, threshold=0.0)


def _checked_spans(
    dataset: Dataset,
    windows: Windows,
    start_logits: NDArray[np.floating],
    end_logits: NDArray[np.floating],
) -> Iterable[SpanChoice]:
    if not (np.isfinite(start_logits).all() and np.isfinite(end_logits).all()):
        raise RunError("the model's output isn't a number for some tokens")
    if windows.n_rows != len(dataset):
        raise RequestError(f"expected windows of {len(dataset)} rows, got {windows.n_rows}")
    return best_spans(windows, start_logits, end_logits)


def evaluate_choices(
    dataset: Dataset, choices: Iterable[SpanChoice], *, threshold: float = 0.0
) -> Evaluation:
    """Scores of n-best choices, one per row in order (an ensemble's, for example)."""
    _measurable(dataset)
    texts, margin = _texts(dataset, choices)
    answered = answer_scores(dataset, texts)
    answers = _answered(texts, margin, threshold=threshold)
    thresholds = {
        name: best_threshold(values, margin, dataset.targets.astype(bool), texts)
        for name, values in answered.items()
    }
    return evaluate_answers(dataset, answers, thresholds=thresholds)


def _texts(
    dataset: Dataset, choices: Iterable[SpanChoice]
) -> tuple[list[str], NDArray[np.float64]]:
    """The best span's text for every question, and how far no answer beats it."""
    texts, margins = [], []
    for row, choice in zip(dataset.rows(), choices, strict=True):
        best = choice.spans[0] if choice.spans else None
        texts.append("" if best is None else (row.pair or "")[best.start : best.end])
        margins.append(choice.margin)
    return texts, np.array(margins)


def _answered(texts: list[str], margin: NDArray[np.float64], *, threshold: float) -> list[str]:
    beaten = margin > threshold
    return ["" if no_answer else text for text, no_answer in zip(texts, beaten, strict=True)]


def evaluate_answers(
    dataset: Dataset,
    answers: Iterable[str],
    *,
    thresholds: Mapping[str, tuple[float, float]] | None = None,
) -> Evaluation:
    """Scores of answer texts, one per row in order; ``""`` says that there is none."""
    _measurable(dataset)
    texts = list(answers)
    scores = answer_scores(dataset, texts)
    outcomes: dict[str, Outcome] = {name: scores[name] for name in dataset.task.metrics}
    found = evaluate_answered(dataset, Answered(np.array(texts, dtype=object), outcomes))
    return replace(found, thresholds=thresholds or {})


def best_threshold(
    answered: NDArray[np.float64],
    margin: NDArray[np.float64],
    has_answer: NDArray[np.bool_],
    texts: list[str],
) -> tuple[float, float]:
    """The no-answer threshold with the highest mean score, and that score.

    Starts with every question left unanswered, then answers them by rising margin. A question
    without an answer loses its point once it is answered (with a text that isn't empty).
    """
    is_text = np.array([bool(text) for text in texts])
    change = np.where(has_answer, answered, -is_text.astype(np.float64))
    order = np.argsort(margin, kind="stable")
    totals = np.count_nonzero(~has_answer) + np.cumsum(change[order])
    sorted_margin = margin[order]
    # Questions with equal margins are answered together.
    last_of_equal = np.r_[sorted_margin[1:] != sorted_margin[:-1], True]
    places = np.flatnonzero(last_of_equal)
    best = places[np.argmax(totals[places])]
    nothing = float(np.count_nonzero(~has_answer))
    if nothing >= totals[best]:
        below_all = np.nextafter(sorted_margin[0], -np.inf)
        return float(below_all), nothing / len(margin)
    return float(sorted_margin[best]), float(totals[best]) / len(margin)


def answer_scores(dataset: Dataset, answers: list[str]) -> dict[str, NDArray[np.float64]]:
    """Exact match and token F1 of every row's answer."""
    pairs = [
        score_answer(answer, accepted)
        for answer, accepted in zip(answers, _accepted(dataset), strict=True)
    ]
    table = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return {"exact_match": table[:, 0], "f1": table[:, 1]}


def _accepted(dataset: Dataset) -> Iterator[list[str]]:
    for row in dataset.rows():
        yield [answer.text for answer in answers_in(row.label)]


def _measurable(dataset: Dataset) -> None:
    """Rows without labels can't be scored."""
    task = dataset.task
    if task.primary is None or not dataset.labelled:
        splits = [split.name for split in task.splits if split.labelled]
        is_file = dataset.split == FILE_SPLIT
        hint = "name its column: --label-column" if is_file else f"try {' or '.join(splits)}"
        raise DataError(f"{task.name} {dataset.split} has no labels to score against", hint)
