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
    Dataset,
    Encoded,
    Evaluation,
    Windows,
    encode,
    encode_windows,
    evaluate_logits,
    evaluate_spans,
    label_map,
)
from microtome.tasks.encoding.masking import MaskedTexts, masked
from microtome.tasks.encoding.tagged import TaggedTexts, encode_tagged
from microtome.tasks.encoding.texts import EMBEDDED_KINDS, TextPairs
from microtome.tasks.scoring.evaluation import evaluate_embeddings, evaluate_tags
from microtome.tasks.scoring.masked_tokens import evaluate_masked

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MULTI_LABEL = "multi_label_classification"
HEAD_OF_KIND: Mapping[str, str] = {
    "classification": "classification",
    "regression": "classification",
    "spans": "question-answering",
    "text": "mlm",
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
    encoded = encode_to_score(model, tokenizer, dataset, max_length=max_length)
    return scored(model, dataset, encoded, predict(model, encoded))


def check_fit(model: PreTrainedModel, dataset: Dataset) -> None:
    """Refuse a model whose head can't answer the task."""
    needed = HEAD_OF_KIND.get(dataset.task.kind)
    if needed is None:
        raise RequestError(f"{dataset.task.name} is {dataset.task.kind}, which isn't measured")
    head = adapt(model).head
    if needed == "mlm" != head:
        raise RequestError(
            f"{dataset.task.name} has texts without labels, which only a masked LM is scored on,"
            f" and the model has {f'a {head} head' if head else 'no head'}",
            "name a label column: --label-column",
        )
    if head != needed:
        raise RequestError(
            f"{dataset.task.name} needs a {needed} head, and the model has {head or 'no head'}",
            "fine-tune it first: microtome finetune",
        )
    if needed == "classification" and model.config.problem_type == MULTI_LABEL:
        raise RequestError(
            f"{dataset.task.name} has one label per text, and the model gives several",
            "give rows with several labels each",
        )
    if needed == "classification":  # refuses a head of another size, before anything is computed
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
            "put tokenizer.json next to the weights",
        )
    family = adapt(model)
    most = min(family.n_positions, tokenizer.model_max_length)
    length = min(max_length or dataset.task.hyperparameters.max_length, most)
    # The model decides, not the tokenizer: a generic one would leave a pair without segments.
    segments = family.uses_segments
    if dataset.task.kind == "tokens":
        return encode_tagged(dataset, tokenizer, max_length=length, segments=segments)
    if dataset.task.kind == "spans":
        ordered = None if stride == dataset.task.hyperparameters.stride else stride
        return encode_windows(
            dataset, tokenizer, max_length=length, stride=ordered, segments=segments
        )
    return encode(dataset, tokenizer, max_length=length, segments=segments)


def encode_to_score(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    dataset: Dataset,
    *,
    max_length: int | None = None,
) -> Encoded:
    """The rows as the model is scored on them: a masked LM on plain text gets it with masks."""
    encoded = encode_for(model, tokenizer, dataset, max_length=max_length)
    return masked(encoded, dataset, tokenizer) if dataset.task.kind == "text" else encoded


def text_clusters(dataset: Dataset, encoded: Encoded) -> NDArray[np.int64] | None:
    """Which encoded texts aren't independent: those of one cluster, and of one row."""
    if not isinstance(encoded, (Windows, TaggedTexts, TextPairs)):
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
    if isinstance(encoded, MaskedTexts):
        return evaluate_masked(dataset, logits)
    if isinstance(encoded, TaggedTexts):
        return evaluate_tags(dataset, encoded, logits, model.config.id2label)
    if dataset.task.kind in EMBEDDED_KINDS:
        return evaluate_embeddings(dataset, logits)
    return evaluate_logits(dataset, logits, model.config.id2label)


def outcome(dataset: Dataset, found: Evaluation, metric: str) -> NDArray[np.float64] | Metric:
    """One metric of some answers, ready to be paired with another's on the same rows.

    A score for every row where the metric is their mean (accuracy, and both of SQuAD's); else the
    metric as a function of row weights.
    """
    return found.outcomes[metric]
