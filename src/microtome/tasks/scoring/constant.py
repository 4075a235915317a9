"""What an answer is worth that is the same for every row: the floor under every score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.tasks.dataset import Dataset
from microtome.tasks.encoding.masking import MaskedTexts
from microtome.tasks.encoding.texts import Encoded
from microtome.tasks.reading.scanning import Corpus
from microtome.tasks.scoring.answered import ranked_outcomes
from microtome.tasks.scoring.evaluation import Evaluation, answer_scores
from microtome.tasks.scoring.masked_tokens import (
    MASKED_ACCURACY,
    commonest_share,
    guesses_one_token,
)
from microtome.tasks.scoring.metrics import value
from microtome.tasks.scoring.ranking import ranking_values


def constant_answer(dataset: Dataset, metric: str, encoded: Encoded | None = None) -> float:
    """What the best answer scores that is the same for every row and reads none of them.

    The commonest label (or the one that the metric likes best; of several, the commonest ones), an
    empty answer to every question, the same documents for every query. No entity at all scores 0,
    and a constant number has no correlation with anything; passages that are all alike are ranked
    by chance. Of plain text, whose ``encoded`` form has the masks, the commonest hidden token.
    """
    kind = dataset.task.kind
    if isinstance(encoded, MaskedTexts):
        return commonest_share(encoded)
    if kind in ("regression", "similarity", "tokens"):
        return 0.0
    if kind == "spans":
        return float(answer_scores(dataset, [""] * len(dataset))[metric].mean())
    if kind == "reranking":
        return float(ranked_outcomes(dataset, np.zeros(len(dataset)))[0][metric].mean())
    if kind == "retrieval":
        assert dataset.corpus is not None
        return float(_commonest_documents(dataset.corpus)[metric].mean())
    constants = _label_sets(dataset) if kind == "multilabel" else _labels(dataset)
    return max(value(metric, answers, dataset.targets, dataset.task) for answers in constants)


def _labels(dataset: Dataset) -> Iterator[NDArray[np.int64]]:
    return (np.full_like(dataset.targets, label) for label in range(len(dataset.task.labels)))


def _label_sets(dataset: Dataset) -> Iterator[NDArray[np.bool_]]:
    """The commonest set of labels; and the commonest labels, from none to all of them."""
    sets, counts = np.unique(dataset.targets, axis=0, return_counts=True)
    order = np.argsort(-dataset.targets.mean(axis=0), kind="stable")
    prefixes = np.array([np.isin(np.arange(len(order)), order[:n]) for n in range(len(order) + 1)])
    for labels in (sets[np.argmax(counts)], *prefixes):
        yield np.broadcast_to(labels, dataset.targets.shape)


def _commonest_documents(corpus: Corpus) -> dict[str, NDArray[np.float64]]:
    """Every query gets the documents that most queries want."""
    n_documents = len(corpus.positions)
    wanted = np.bincount(corpus.documents, corpus.grades > 0, minlength=n_documents)
    ranks = np.empty(n_documents, dtype=np.int64)
    ranks[np.argsort(-wanted, kind="stable")] = np.arange(1, n_documents + 1)
    return ranking_values(corpus.queries, corpus.grades, ranks[corpus.documents])


def gives_one_answer(evaluation: Evaluation) -> bool:
    """Whether a model answers every row alike: it reads nothing, however good its score looks."""
    if evaluation.primary == MASKED_ACCURACY:
        return guesses_one_token(evaluation.predictions)
    predictions = evaluation.predictions
    return bool((predictions == predictions[:1]).all())


def with_constant(
    dataset: Dataset, evaluation: Evaluation, encoded: Encoded | None = None
) -> Evaluation:
    """The same scores, and what one constant answer scores by each of their metrics."""
    scores = {name: constant_answer(dataset, name, encoded) for name in evaluation.outcomes}
    return replace(evaluation, constant_scores=scores)


def answer_columns(
    dataset: Dataset, evaluation: Evaluation, metric: str, encoded: Encoded | None = None
) -> dict[str, Any]:
    """Two columns of a row of scores: are the answers all one, and what does a constant score."""
    return {
        "one_answer": gives_one_answer(evaluation),
        "constant_value": constant_answer(dataset, metric, encoded),
    }
