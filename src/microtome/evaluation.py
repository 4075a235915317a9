"""A model on a data set: encode, predict, score. Everything below knows only its own half."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from microtome.errors import ModelError, RequestError
from microtome.families import adapt
from microtome.observe.predicting import predict
from microtome.statistics import Metric
from microtome.tasks import (
    Answer,
    Dataset,
    Encoded,
    Evaluation,
    Windows,
    encode,
    encode_windows,
    evaluate_logits,
    evaluate_spans,
    label_map,
    metric_of,
    score_answer,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

HEAD_OF_KIND: Mapping[str, str] = {
    "classification": "classification",
    "regression": "classification",
    "span": "question-answering",
}


def evaluate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    dataset: Dataset,
    *,
    max_length: int | None = None,
) -> Evaluation:
    """The official scores of ``model`` on ``dataset``, each with an interval."""
    check_fit(model, dataset)
    encoded = encode_for(model, tokenizer, dataset, max_length=max_length)
    return scored(model, dataset, encoded, predict(model, encoded))


def check_fit(model: PreTrainedModel, dataset: Dataset) -> None:
    """Refuse a model whose head can't answer the task."""
    wanted = HEAD_OF_KIND.get(dataset.task.kind)
    found = adapt(model).head
    if wanted is None:
        raise RequestError(
            f"{dataset.task.name} has texts without labels, and scores need labels",
            "name a label column: --label-column",
        )
    if found != wanted:
        raise RequestError(
            f"{dataset.task.name} needs a {wanted} head, and the model has {found or 'no head'}",
            "fine-tune it first: microtome finetune",
        )
    if wanted == "classification":  # refuses a head of another size, before anything is computed
        label_map(dataset.task, model.config.id2label, model.config.num_labels)


def encode_for(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    dataset: Dataset,
    *,
    max_length: int | None = None,
    stride: int | None = None,
) -> Encoded:
    """The rows as tokens, never longer than the model's position table.

    The task's own ``stride`` gives way to a short table; another one is an order.
    """
    if tokenizer is None:
        raise ModelError(
            "the model's folder has no tokenizer, and texts have to be encoded",
            "put tokenizer.json beside the weights",
        )
    family = adapt(model)
    most = min(family.n_positions, tokenizer.model_max_length)
    length = min(max_length or dataset.task.recipe.max_length, most)
    # The model decides, not the tokenizer: a generic one would leave a pair without segments.
    segments = family.uses_segments
    if dataset.task.kind == "span":
        ordered = None if stride == dataset.task.recipe.stride else stride
        return encode_windows(
            dataset, tokenizer, max_length=length, stride=ordered, segments=segments
        )
    return encode(dataset, tokenizer, max_length=length, segments=segments)


def text_clusters(dataset: Dataset, encoded: Encoded) -> NDArray[np.int64] | None:
    """Which encoded texts aren't independent: those of one cluster, and a question's windows."""
    if not isinstance(encoded, Windows):
        return dataset.clusters
    if dataset.clusters is None:
        return encoded.of_row.astype(np.int64)
    return dataset.clusters[encoded.of_row]


def scored(
    model: PreTrainedModel, dataset: Dataset, encoded: Encoded, logits: NDArray[Any]
) -> Evaluation:
    """Scores of what ``model``, or an edited copy of it, put out."""
    if isinstance(encoded, Windows):
        return evaluate_spans(dataset, encoded, logits[:, 0], logits[:, 1])
    return evaluate_logits(dataset, logits, model.config.id2label)


def outcome(dataset: Dataset, found: Evaluation, metric: str) -> NDArray[np.float64] | Metric:
    """One metric of some answers, ready to be paired with another's on the same rows.

    A score for every row where the metric is their mean (accuracy, and both of SQuAD's); else the
    metric as a function of row weights.
    """
    if dataset.task.kind == "span":
        column = ("exact_match", "f1").index(metric)
        pairs = zip(found.predictions, dataset.rows(), strict=True)
        return np.array([score_answer(text, _texts(row.label))[column] for text, row in pairs])
    if metric == "accuracy":
        return np.asarray(found.predictions == dataset.targets, dtype=np.float64)
    return metric_of(metric, found.predictions, dataset.targets, dataset.task)


def _texts(label: object) -> list[str]:
    answers: tuple[Answer, ...] = label if isinstance(label, tuple) else ()
    return [answer.text for answer in answers]
