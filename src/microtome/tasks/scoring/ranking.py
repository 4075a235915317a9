"""How well a ranking is: nDCG, reciprocal rank, average precision, recall, per query.

As trec_eval has them: a document's gain is its grade, discounted by log₂(rank + 1); grades above 0
are relevant. Documents with equal scores keep their order; passages to be reranked don't, because
files list the relevant ones first, and a model that can't tell passages apart would be perfect.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from microtome.tasks.reading.scanning import Corpus

Indices = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Similarity = Literal["cosine", "dot"]
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)

N_TOP = 10
CHUNK = 2**24  # scores held at once


def ranking_values(queries: Indices, grades: Indices, ranks: Indices) -> dict[str, FloatArray]:
    """Every metric of each query with a relevant document, by query.

    One entry per judged document: its query, its grade, its rank from 1 on.
    """
    relevant = grades > 0
    _, query = np.unique(queries[relevant], return_inverse=True)
    grade, rank = grades[relevant], ranks[relevant]
    n_relevant = np.bincount(query)

    def total(values: NDArray[Any]) -> FloatArray:
        return np.asarray(np.bincount(query, values.astype(np.float64)), dtype=np.float64)

    nth = _within(query, rank)  # from 1: the best ranked of a query's relevant documents
    ideal = _within(query, -grade)
    gains = np.where(rank <= N_TOP, grade / np.log2(rank + 1), 0)
    best = np.where(ideal <= N_TOP, grade / np.log2(ideal + 1), 0)
    first = np.where((nth == 1) & (rank <= N_TOP), 1 / rank, 0)
    return {
        "ndcg_at_10": np.minimum(1.0, total(gains) / total(best)),
        "mrr_at_10": total(first),
        "map": np.minimum(1.0, total(nth / rank) / n_relevant),
        "recall_at_100": total(rank <= 100) / n_relevant,
    }


def ranks_within(queries: Indices, relevance: FloatArray, digests: NDArray[np.uint64]) -> Indices:
    """The rank of every passage among those of its query, from 1 on; ties by the texts' hashes."""
    return _within(queries, digests[:, 0], -relevance)


def _within(groups: Indices, *keys: NDArray[Any]) -> Indices:
    """Places 1, 2, … by the last key, then by those before it, within each group."""
    order = np.lexsort((*keys, groups))
    in_order = groups[order]
    starts = np.flatnonzero(np.r_[True, in_order[1:] != in_order[:-1]])
    places = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = places + 1
    return ranks


def similarities(first: FloatArray, second: FloatArray, similarity: Similarity) -> FloatArray:
    """Cosine, or dot product, of each row with the same row of the other."""
    left, right = scaled(first, similarity), scaled(second, similarity)
    return np.asarray(np.einsum("nd,nd->n", left, right))


def scaled(embeddings: NDArray[Any], similarity: Similarity) -> FloatArray:
    """Embeddings whose dot product is the similarity; one of length 0 is similar to nothing."""
    values = np.asarray(embeddings, dtype=np.float64)
    if similarity == "dot":
        return values
    norms = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(values / np.where(norms == 0, 1.0, norms))


def search(corpus: Corpus, queries: FloatArray, documents: FloatArray) -> tuple[Indices, Indices]:
    """The rank of every judged document for its query, and each query's first ten documents."""
    ranks = np.empty(len(corpus.queries), dtype=np.int64)
    n_top = min(N_TOP, len(documents))
    top = np.empty((len(queries), n_top), dtype=np.int64)
    step = max(1, CHUNK // max(len(documents), 1))
    borders = np.searchsorted(corpus.queries, np.arange(len(queries) + 1))
    for begin in range(0, len(queries), step):
        for query, scores in enumerate(queries[begin : begin + step] @ documents.T, start=begin):
            part = slice(borders[query], borders[query + 1])
            ranks[part] = _ranks(scores, corpus.documents[part])
            # The n best by score, then every document level with the last of them, in order.
            least = np.partition(scores, -n_top)[-n_top]
            best = np.flatnonzero(scores >= least)
            top[query] = best[np.argsort(-scores[best], kind="stable")][:n_top]
    return ranks, top


def _ranks(scores: FloatArray, documents: Indices) -> Indices:
    own = scores[documents][:, None]
    earlier = np.arange(len(scores)) < documents[:, None]
    before = (scores > own) | ((scores == own) & earlier)
    return np.asarray(1 + before.sum(axis=1), dtype=np.int64)
