"""A model on a data set: encode, predict, score. Everything below knows only its own half."""

from __future__ import annotations

from typing import TYPE_CHECKING

from microtome.errors import ModelError, RequestError
from microtome.families import adapt
from microtome.observe import predict
from microtome.tasks import (
    Dataset,
    Evaluation,
    encode,
    encode_windows,
    evaluate_logits,
    evaluate_spans,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

HEAD_OF_KIND = {
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
    if tokenizer is None:
        raise ModelError(
            "the model's folder has no tokenizer, and texts have to be encoded",
            "put tokenizer.json beside the weights",
        )
    check_fit(model, dataset)
    segments = adapt(model).uses_segments
    if dataset.task.kind == "span":
        windows = encode_windows(dataset, tokenizer, max_length=max_length, segments=segments)
        logits = predict(model, windows)  # (T, 2)
        return evaluate_spans(dataset, windows, logits[:, 0], logits[:, 1])
    encoded = encode(dataset, tokenizer, max_length=max_length, segments=segments)
    return evaluate_logits(dataset, predict(model, encoded), model.config.id2label)


def check_fit(model: PreTrainedModel, dataset: Dataset) -> None:
    """Refuse a model whose head can't answer the task."""
    wanted = HEAD_OF_KIND.get(dataset.task.kind, dataset.task.kind)
    found = adapt(model).head
    if found != wanted:
        raise RequestError(
            f"{dataset.task.name} needs a {wanted} head, and the model has {found or 'no head'}",
            "fine-tune it first: microtome finetune",
        )
