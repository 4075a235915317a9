"""From what a model put out to its answers, and what they are worth by each metric.

An outcome is a score for every row where the metric is their mean, else the metric as a function of
the rows' weights: ready for intervals, and to be paired with another model's on the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.errors import RequestError, RunError
from microtome.statistics import Metric
from microtome.tasks.dataset import Dataset
from microtome.tasks.encoding.tagged import UNSEEN, TaggedTexts
from microtome.tasks.scoring.entities import entities, entity_f1
from microtome.tasks.scoring.labels import label_map, tag_map
from microtome.tasks.scoring.metrics import outcomes_of
from microtome.tasks.scoring.ranking import (
    Similarity,
    ranking_values,
    ranks_within,
    scaled,
    search,
    similarities,
)
from microtome.tasks.tags import OUTSIDE, is_strict, strict_tags

Outcome = NDArray[np.float64] | Metric


@dataclass(frozen=True, eq=False)
class Answered:
    """A model's answers, and their outcome by each of the task's metrics, the primary first."""

    predictions: NDArray[Any]
    outcomes: Mapping[str, Outcome]
    notes: tuple[str, ...] = ()


def answered_labels(
    dataset: Dataset, logits: NDArray[Any], id2label: Mapping[int, str] | None = None
) -> Answered:
    """A label, labels, a number or a relevance for every row, from logits (n, k)."""
    task = dataset.task
    logits = np.asarray(logits)
    if logits.ndim == 1:
        logits = logits[:, None]
    order, note = label_map(task, id2label, logits.shape[1])
    _check_output(logits, len(dataset), "rows")
    if task.kind == "reranking":
        return _answered_rankings(dataset, logits.astype(np.float64))
    if task.kind == "regression":
        predictions: NDArray[Any] = logits[:, 0].astype(np.float64)
    elif task.kind == "multilabel":
        predictions = logits[:, order] > 0  # a probability above a half
    else:
        predictions = logits[:, order].argmax(axis=1)
    notes = () if task.kind == "regression" else (note,)
    return Answered(predictions, outcomes_of(task, predictions, dataset.targets), notes)


def _answered_rankings(dataset: Dataset, logits: NDArray[np.float64]) -> Answered:
    """The relevance of every passage, and the scores of the queries."""
    relevance = logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]
    return Answered(relevance, *ranked_outcomes(dataset, relevance))


def ranked_outcomes(
    dataset: Dataset, relevance: NDArray[np.float64]
) -> tuple[dict[str, NDArray[np.float64]], tuple[str, ...]]:
    """The scores of every query that has a relevant passage, by metric; and what to know."""
    assert dataset.clusters is not None  # a query's passages are one
    ranks = ranks_within(dataset.clusters, relevance, dataset.digests)
    values = ranking_values(dataset.clusters, dataset.targets, ranks)
    if not dataset.n_scored:
        raise RunError(f"{dataset.task.name} has no query with a relevant passage")
    n_queries = len(np.unique(dataset.clusters))
    notes = [f"{n_queries:,} queries with {len(dataset):,} passages"]
    if left_out := n_queries - dataset.n_scored:
        notes.append(f"{left_out:,} queries without a relevant passage left out")
    return {name: values[name] for name in dataset.task.metrics}, tuple(notes)


def answered_tags(
    dataset: Dataset,
    encoded: TaggedTexts,
    logits: NDArray[Any],
    id2label: Mapping[int, str] | None = None,
) -> Answered:
    """A tag for every word, from logits (T, tags) of its first token; O where it has none."""
    logits = np.asarray(logits)
    return answered_words(dataset, words_of(encoded, logits), logits.shape[1], id2label)


def words_of(encoded: TaggedTexts, logits: NDArray[Any]) -> NDArray[np.int16]:
    """The output that a token head gives each word (words,); UNSEEN where no token is its own."""
    _check_output(logits, len(encoded.ids), "tokens")
    seen = encoded.word_tokens != UNSEEN
    outputs = np.full(len(seen), UNSEEN, dtype=np.int16)
    outputs[seen] = logits[encoded.word_tokens[seen]].argmax(axis=1)
    return outputs


def answered_words(
    dataset: Dataset,
    outputs: NDArray[np.int16],
    n_outputs: int,
    id2label: Mapping[int, str] | None = None,
) -> Answered:
    """A tag for every word, from what ``words_of`` gives."""
    task, gold = dataset.task, dataset.tags
    assert gold is not None
    spoken, note = tag_map(task, id2label, n_outputs)
    names = tuple(dict.fromkeys((*task.labels, OUTSIDE, *spoken)))
    seen = outputs != UNSEEN
    tags = np.full(len(seen), names.index(OUTSIDE), dtype=np.int64)
    place = np.array([names.index(name) for name in spoken])
    tags[seen] = place[outputs[seen]]
    notes = [note]
    if not all(map(is_strict, spoken)):
        names, tags = _as_strict(names, tags, gold.offsets)
        notes.append("the model's tags were converted to IOB2")
    if n_unseen := int((~seen).sum()):
        notes.append(f"{n_unseen:,} words have no token and count as {OUTSIDE}")
    called = entities(names, tags, gold.offsets)
    if called.n_stray > len(called.starts):
        notes.append(f"{called.n_stray:,} predicted entities begin with an I, and don't count")
    return Answered(tags, {"entity_f1": entity_f1(names, tags, gold)}, tuple(notes))


def _as_strict(
    names: tuple[str, ...], tags: NDArray[np.int64], offsets: NDArray[np.int64]
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    sentences = np.split(tags, offsets[1:-1])
    strict = [tag for part in sentences for tag in strict_tags([names[t] for t in part])[0]]
    more = tuple(dict.fromkeys((*names, *strict)))
    places = {name: index for index, name in enumerate(more)}
    return more, np.array([places[tag] for tag in strict], dtype=np.int64)


def answered_embeddings(
    dataset: Dataset, embeddings: NDArray[Any], similarity: Similarity = "cosine"
) -> Answered:
    """Similarities of pairs, from embeddings (2n, D) of texts 2i and 2i + 1; or searches."""
    return answered_comparisons(dataset, comparisons_of(dataset, embeddings, similarity))


def comparisons_of(
    dataset: Dataset, embeddings: NDArray[Any], similarity: Similarity = "cosine"
) -> NDArray[Any]:
    """What the scores need of embeddings, a few numbers per row: each pair's similarity (n,).

    Of a search the rank of every judged document, then each query's first ten documents.
    """
    embeddings, corpus = np.asarray(embeddings), dataset.corpus
    if corpus is None:
        _check_output(embeddings, 2 * len(dataset), "texts")
        return similarities(embeddings[::2], embeddings[1::2], similarity)
    _check_output(embeddings, len(dataset) + len(corpus.positions), "queries and documents")
    values = scaled(embeddings, similarity)
    ranks, top = search(corpus, values[: len(dataset)], values[len(dataset) :])
    return np.concatenate([ranks, top.ravel()]).astype(np.int32)


def answered_comparisons(dataset: Dataset, comparisons: NDArray[Any]) -> Answered:
    """Similarities, or each query's first ten documents, from what ``comparisons_of`` gives."""
    corpus = dataset.corpus
    if corpus is None:
        outcomes = outcomes_of(dataset.task, comparisons, dataset.targets)
        return Answered(comparisons, outcomes)
    ranks, top = np.split(comparisons, [len(corpus.queries)])
    scores = ranking_values(corpus.queries, corpus.grades, ranks)
    note = f"{len(dataset):,} queries on {len(corpus.positions):,} documents"
    found = {name: scores[name] for name in dataset.task.metrics}
    return Answered(top.reshape(len(dataset), -1), found, (note,))


def _check_output(output: NDArray[Any], n_expected: int, what: str) -> None:
    if len(output) != n_expected:
        raise RequestError(f"expected output of {n_expected} {what}, got {len(output)}")
    if not np.isfinite(output).all():
        n_bad = int((~np.isfinite(output).all(axis=1)).sum())
        raise RunError(f"the model's output isn't a number in {n_bad} of {len(output)} {what}")
