"""What a model's output is worth by every official metric, ready to be paired with another's.

A sweep has an output for each of its variants. Of embeddings and token logits only what the scores
need is kept: they would fill gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from microtome.families import adapt
from microtome.observe.evaluation import scored, similarity_of
from microtome.observe.layer_orders import predict_orders
from microtome.observe.predicting import predict
from microtome.observe.sweeping import sweep
from microtome.observe.targets import How
from microtome.observe.texts import first_texts
from microtome.tasks import Dataset, Encoded, Evaluation, Windows
from microtome.tasks.encoding.masking import MaskedTexts
from microtome.tasks.encoding.tagged import TaggedTexts
from microtome.tasks.encoding.texts import EMBEDDED_KINDS
from microtome.tasks.scoring.answered import (
    Answered,
    Outcome,
    answered_comparisons,
    answered_labels,
    answered_words,
    comparisons_of,
    words_of,
)
from microtome.tasks.scoring.evaluation import answer_scores, answers_of, evaluate_answered
from microtome.tasks.scoring.masked_tokens import MASKED_ACCURACY, masked_accuracy

BYTES_AT_ONCE = 2**28  # of embeddings or token logits, before they are reduced to answers
Progress = Callable[[int, int], None]
T = TypeVar("T")


def answers_in(
    model: PreTrainedModel, dataset: Dataset, encoded: Encoded, output: NDArray[Any]
) -> NDArray[Any]:
    """What is kept of an output of ``model`` or of an edited copy: as much as the scores need.

    The head's choice for each word, the similarity of each pair, the ranks of judged documents;
    logits as they are.
    """
    if isinstance(encoded, TaggedTexts):
        return words_of(encoded, output)
    if dataset.task.kind in EMBEDDED_KINDS:
        return comparisons_of(dataset, output, similarity_of(model, dataset))
    return output


def outcomes(
    model: PreTrainedModel, dataset: Dataset, encoded: Encoded, answers: NDArray[Any]
) -> Mapping[str, Outcome]:
    """Every metric of the task, the primary first, of what ``answers_in`` kept.

    A score for every row where the metric is their mean (accuracy, both of SQuAD's, those of a
    search); else the metric as a function of row weights. There are no intervals: a sweep over 144
    heads compares its outcomes with the baseline's, and would compute 144 intervals in vain.
    """
    if isinstance(encoded, Windows):
        texts = answers_of(dataset, encoded, answers[:, 0], answers[:, 1])
        scores = answer_scores(dataset, texts)
        return {name: scores[name] for name in dataset.task.metrics}
    if isinstance(encoded, MaskedTexts):
        return {MASKED_ACCURACY: masked_accuracy(dataset, np.asarray(answers, dtype=np.float64))}
    reduced = _answered(model, dataset, encoded, answers)
    if reduced is None:
        return answered_labels(dataset, answers, model.config.id2label).outcomes
    return reduced.outcomes


def evaluation_of(
    model: PreTrainedModel, dataset: Dataset, encoded: Encoded, answers: NDArray[Any]
) -> Evaluation:
    """The scores, with intervals, of what ``answers_in`` kept."""
    reduced = _answered(model, dataset, encoded, answers)
    if reduced is None:
        return scored(model, dataset, encoded, answers)
    return evaluate_answered(dataset, reduced)


def _answered(
    model: PreTrainedModel, dataset: Dataset, encoded: Encoded, answers: NDArray[Any]
) -> Answered | None:
    """None where the answers are the output itself."""
    if isinstance(encoded, TaggedTexts):
        return answered_words(dataset, answers, model.config.num_labels, model.config.id2label)
    if dataset.task.kind in EMBEDDED_KINDS:
        return answered_comparisons(dataset, answers)
    return None


def swept_answers(
    model: PreTrainedModel,
    dataset: Dataset,
    encoded: Encoded,
    targets: Sequence[str | Sequence[str]],
    *,
    how: How = "uniform",
    progress: Progress | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The answers of the model as it is, and with each target disabled (targets, …)."""
    baseline: NDArray[Any] | None = None
    kept: list[NDArray[Any]] = []
    for batch in _batches(model, dataset, encoded, targets):
        swept = sweep(model, encoded, batch, how=how, progress=progress)
        baseline = answers_in(model, dataset, encoded, swept.baseline)
        kept += [answers_in(model, dataset, encoded, output) for output in swept.logits]
    assert baseline is not None  # there is a batch at least
    return baseline, np.stack(kept) if kept else np.empty((0, *baseline.shape), baseline.dtype)


def ordered_answers(
    model: PreTrainedModel,
    dataset: Dataset,
    encoded: Encoded,
    orders: Sequence[Sequence[int]],
    *,
    progress: Progress | None = None,
) -> NDArray[Any]:
    """The answers under each order of layers (orders, …)."""
    kept = [
        answers_in(model, dataset, encoded, output)
        for batch in _batches(model, dataset, encoded, orders)
        for output in predict_orders(model, encoded, batch, progress=progress)
    ]
    return np.stack(kept)


def _batches(
    model: PreTrainedModel, dataset: Dataset, encoded: Encoded, variants: Sequence[T]
) -> Iterator[Sequence[T]]:
    """Variants whose outputs are held together: all of them where outputs are kept as they are."""
    if not isinstance(encoded, TaggedTexts) and dataset.task.kind not in EMBEDDED_KINDS:
        yield variants
        return
    width = predict(model, first_texts(encoded, 1)).shape[1]
    n_rows = len(encoded.ids) if adapt(model).by_token else len(encoded)
    at_once = max(1, BYTES_AT_ONCE // (4 * n_rows * width))
    for start in range(0, max(1, len(variants)), at_once):
        yield variants[start : start + at_once]
