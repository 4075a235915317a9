"""A model on a data set: encode, predict, score. Everything below knows only its own half."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from microtome.errors import ModelError, RequestError
from microtome.families import adapt
from microtome.families.embedder import Embedder
from microtome.families.head_kinds import head_of, is_embedder
from microtome.observe.embedding import prompt_tokens
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
from microtome.tasks.dataset import as_kind, kind_for
from microtome.tasks.encoding.masking import MaskedTexts, masked
from microtome.tasks.encoding.tagged import TaggedTexts, encode_tagged
from microtome.tasks.encoding.texts import EMBEDDED_KINDS, TextPairs
from microtome.tasks.scoring.constant import with_constant
from microtome.tasks.scoring.evaluation import evaluate_embeddings, evaluate_tags
from microtome.tasks.scoring.labels import tag_map
from microtome.tasks.scoring.masked_tokens import evaluate_masked
from microtome.tasks.scoring.ranking import SIMILARITIES, Similarity
from microtome.tasks.task import Kind, Task

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MULTI_LABEL = "multi_label_classification"
EMBEDDER = "embedder"
_NEEDED: Mapping[Kind, str] = {
    "classification": "classification",
    "regression": "classification",
    "multilabel": "classification",
    "reranking": "classification",
    "tokens": "token-classification",
    "spans": "question-answering",
    "similarity": EMBEDDER,
    "retrieval": EMBEDDER,
    "text": "mlm",
}
"""The head that is measured on each kind of data."""


def evaluate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    dataset: Dataset,
    *,
    max_length: int | None = None,
) -> Evaluation:
    """The official scores of ``model`` on ``dataset``, each with an interval.

    Pairs with a number are scored by cosine where the model is an embedder.
    """
    dataset = as_kind(dataset, kind_for(dataset.task.kind, head_name(model)))
    check_fit(model, dataset)
    encoded = encode_to_score(model, tokenizer, dataset, max_length=max_length)
    found = scored(model, dataset, encoded, predict(model, encoded))
    return with_constant(dataset, found, encoded)


def head_name(model: PreTrainedModel) -> str | None:
    """The head that decides what a model is measured on: "embedder" for one that has no other."""
    return "embedder" if is_embedder(model) else head_of(model)


def check_fit(model: PreTrainedModel, dataset: Dataset) -> None:
    """Refuse a model whose head can't answer the task."""
    task, needed = dataset.task, _NEEDED[dataset.task.kind]
    head = head_name(model)
    if head != needed:
        raise _no_fit(task, needed, head)
    if dataset.prompt is not None and needed != EMBEDDER:
        raise RequestError("a prompt is for an embedder, and the model is none", "leave it out")
    if needed == "token-classification":
        tag_map(task, model.config.id2label, model.config.num_labels)
    if needed != "classification":
        return
    gives_several = model.config.problem_type == MULTI_LABEL
    if gives_several != (task.kind == "multilabel"):
        one, several = "one label per text", "several labels per text"
        has, gives = (one, several) if gives_several else (several, one)
        raise RequestError(
            f"{task.name} has {has}, and the model gives {gives}",
            f"give rows with {gives}, or fine-tune on these first",
        )
    # Refuses a head of another size, before anything is computed.
    label_map(task, model.config.id2label, model.config.num_labels)


def _no_fit(task: Task, needed: str, head: str | None) -> RequestError:
    has = "is an embedder" if head == EMBEDDER else f"has {head or 'no head'}"
    if needed == "mlm":
        return RequestError(
            f"{task.name} has texts without labels, which only a masked LM is scored on,"
            f" and the model {has if head == EMBEDDER else f'has a {head} head' if head else has}",
            "name a label column: --label-column",
        )
    if needed == EMBEDDER:
        return RequestError(
            f"{task.name} ({task.kind}) needs an embedder, and the model {has}",
            "give a sentence-transformers folder, or an encoder with --pooling cls or mean",
        )
    return RequestError(
        f"{task.name} needs a {needed} head, and the model {has}",
        "fine-tune it first: microtome finetune",
    )


def encode_for(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    dataset: Dataset,
    *,
    max_length: int | None = None,
    stride: int | None = None,
) -> Encoded:
    """The rows as tokens, never longer than the model's position table.

    An embedder reads as much of a text as its folder says, unless a length was asked for. The
    task's own ``stride`` gives way to a short table; another one is an order.
    """
    if tokenizer is None:
        raise ModelError(
            "the model's folder has no tokenizer, and texts have to be encoded",
            "put tokenizer.json next to the weights",
        )
    family, kind = adapt(model), dataset.task.kind
    most = min(family.n_positions, tokenizer.model_max_length)
    embedder = family.embedder if kind in EMBEDDED_KINDS else None
    asked = max_length or dataset.max_length or (embedder and embedder.max_length)
    length = min(asked or dataset.task.hyperparameters.max_length, most)
    # The model decides, not the tokenizer: a generic one would leave a pair without segments.
    segments = family.uses_segments
    if embedder is not None:
        prompts, n_prompt = _prompts(embedder, tokenizer, dataset)
        encoded = encode(dataset, tokenizer, max_length=length, segments=segments, prompts=prompts)
        return replace(encoded, n_prompt=n_prompt)
    if kind == "tokens":
        return encode_tagged(dataset, tokenizer, max_length=length, segments=segments)
    if kind == "spans":
        ordered = None if stride == dataset.task.hyperparameters.stride else stride
        return encode_windows(
            dataset, tokenizer, max_length=length, stride=ordered, segments=segments
        )
    return encode(dataset, tokenizer, max_length=length, segments=segments)


def _prompts(
    embedder: Embedder, tokenizer: PreTrainedTokenizerBase, dataset: Dataset
) -> tuple[tuple[str, str], int]:
    """What is put before queries and documents, and how many tokens of it aren't pooled.

    A prompt that is named is the queries'; both texts of a pair get one prompt.
    """
    first = embedder.prompt(dataset.prompt)
    second = first
    if dataset.task.kind == "retrieval":
        first = embedder.prompt_of_role("query") if dataset.prompt is None else first
        second = embedder.prompt_of_role("document")
    if embedder.include_prompt:
        return (first, second), 0
    counts = [prompt_tokens(tokenizer, prompt) for prompt in (first, second)]
    if counts[0] != counts[1]:
        raise RequestError(
            f"prompts of {counts[0]} and {counts[1]} tokens, which the model doesn't pool, can't be"
            " measured in one search"
        )
    return (first, second), counts[0]


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
    """Which encoded texts aren't independent: those of one cluster, and of one row.

    The documents that queries search are independent of each other.
    """
    if dataset.corpus is not None and dataset.clusters is not None:
        first = int(dataset.clusters.max()) + 1
        documents = np.arange(first, first + len(dataset.corpus.positions))
        return np.concatenate([dataset.clusters, documents])
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
        return evaluate_embeddings(dataset, logits, similarity=similarity_of(model, dataset))
    return evaluate_logits(dataset, logits, model.config.id2label)


def similarity_of(model: PreTrainedModel, dataset: Dataset) -> Similarity:
    """How a search compares embeddings: as the model's folder says. Pairs: always by cosine."""
    embedder = adapt(model).embedder
    if embedder is None or dataset.task.kind != "retrieval":
        return "cosine"
    for known in SIMILARITIES:
        if embedder.similarity == known:
            return known
    raise RequestError(
        f"the model compares embeddings by {embedder.similarity}, searches are measured by"
        f" {' or '.join(SIMILARITIES)}"
    )


def outcome(dataset: Dataset, found: Evaluation, metric: str) -> NDArray[np.float64] | Metric:
    """One metric of some answers, ready to be paired with another's on the same rows.

    A score for every row where the metric is their mean (accuracy, and both of SQuAD's); else the
    metric as a function of row weights.
    """
    return found.outcomes[metric]
