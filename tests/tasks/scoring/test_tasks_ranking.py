"""Rankings: trec_eval's figures per query, ties, embeddings, and the constant answers."""

from __future__ import annotations

import json

import numpy as np
import pytest
import pytrec_eval
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from microtome.errors import RequestError
from microtome.tasks import (
    DataSpec,
    Row,
    Task,
    constant_answer,
    evaluate_embeddings,
    evaluate_logits,
    gives_one_answer,
    open_data,
)
from microtome.tasks.scoring.ensembles import ensemble_logits
from microtome.tasks.task import METRICS_OF
from support.rows_in_memory import dataset_from

MEASURES = {
    "ndcg_at_10": "ndcg_cut_10",
    "mrr_at_10": "recip_rank",
    "map": "map",
    "recall_at_100": "recall_100",
}
RERANKING = Task("pairs", "reranking", METRICS_OF["reranking"], "", cluster_by="text")


def of_trec(qrels, runs, *, depth=10**6):
    """Figures per query; ``recip_rank`` of the first ten only."""
    judge = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10", "map", "recall_100"})
    first = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"})
    ten = {q: dict(sorted(run.items(), key=lambda x: -x[1])[:10]) for q, run in runs.items()}
    found, reciprocal = judge.evaluate(runs), first.evaluate(ten)
    return {query: found[query] | reciprocal[query] for query in found}


def folder_of(tmp_path, qrels, n_queries, n_documents):
    (tmp_path / "qrels").mkdir(exist_ok=True)
    for name, n in (("corpus", n_documents), ("queries", n_queries)):
        lines = [json.dumps({"_id": str(i), "text": f"{name} {i}"}) for i in range(n)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    table = [f"{q}\t{d}\t{g}\n" for q, judged in qrels.items() for d, g in judged.items()]
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(table))
    return open_data(DataSpec(path=tmp_path))


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_retrieval_is_what_trec_eval_says_of_every_query(tmp_path, similarity):
    rng = np.random.default_rng(0)
    n_queries, n_documents = 30, 240
    qrels = {
        str(q): {str(d): int(rng.integers(0, 4)) for d in rng.choice(n_documents, 15, False)}
        for q in range(n_queries)
    }
    data = folder_of(tmp_path, qrels, n_queries, n_documents)
    embeddings = rng.normal(size=(n_queries + n_documents, 6))
    found = evaluate_embeddings(data, embeddings, similarity=similarity)
    queries, documents = embeddings[:n_queries], embeddings[n_queries:]
    scores = queries @ documents.T
    if similarity == "cosine":
        scores /= np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(documents, axis=1)
    runs = {str(q): {str(d): float(s) for d, s in enumerate(scores[q])} for q in range(n_queries)}
    wanted = of_trec(qrels, runs)
    for ours, theirs in MEASURES.items():
        by_query = [wanted[str(q)][theirs] for q in range(n_queries)]
        assert found.outcomes[ours] == pytest.approx(by_query, abs=1e-9)
        assert found.scores[ours].value == pytest.approx(np.mean(by_query))
        assert found.scores[ours].n == n_queries
    assert found.primary == "ndcg_at_10"
    assert (found.predictions == np.argsort(-scores, axis=1)[:, :10]).all()


def test_documents_that_are_alike_keep_their_order(tmp_path):
    data = folder_of(tmp_path, {"0": {"1": 1}, "1": {"0": 1}}, 2, 3)
    same = evaluate_embeddings(data, np.ones((5, 4)))
    assert same.outcomes["map"].tolist() == [1 / 2, 1]
    assert gives_one_answer(same)
    assert same.predictions.tolist() == [[0, 1, 2]] * 2
    # 1/2 and 1 is also the best that one ranking for both queries can do.
    assert constant_answer(data, "map") == pytest.approx(0.75)
    zero = evaluate_embeddings(data, np.zeros((5, 4)))
    assert zero.outcomes["map"].tolist() == [1 / 2, 1]


QUERIES = st.lists(
    st.lists(st.tuples(st.integers(0, 2), st.integers(-9, 9)), min_size=1, max_size=14),
    min_size=1,
    max_size=6,
)


@settings(max_examples=100, deadline=None)
@given(QUERIES, st.booleans())
def test_reranking_is_what_trec_eval_says_of_every_query(queries, two_logits):
    rows = [
        Row(f"query {q}", f"passage {q}.{p}", grade)
        for q, passages in enumerate(queries)
        for p, (grade, _) in enumerate(passages)
    ]
    # Different scores everywhere: ties are another test's.
    scores = np.array([s + 1e-4 * i for i, (_, s) in enumerate(p for q in queries for p in q)])
    data = dataset_from(RERANKING, rows)
    qrels, runs = {}, {}
    for row, score in zip(rows, scores, strict=True):
        qrels.setdefault(row.text, {})[row.pair] = row.label
        runs.setdefault(row.text, {})[row.pair] = float(score)
    measured = [query for query in qrels if any(qrels[query].values())]
    logits = np.stack([scores * 0 + 3, scores + 3], axis=1) if two_logits else scores[:, None]
    if not measured:
        return
    found = evaluate_logits(data, logits)
    wanted = of_trec(qrels, runs)
    cluster = {row.text: data.clusters[i] for i, row in enumerate(rows)}
    for ours in data.task.metrics:
        by_query = [wanted[query][MEASURES[ours]] for query in measured]
        assert found.scores[ours].value == pytest.approx(np.mean(by_query), abs=1e-6)
        assert found.scores[ours].n == len(measured)
        # The outcome has an entry for every query, in the order of their clusters.
        in_order = sorted(measured, key=lambda query: cluster[query])
        expected = [wanted[query][MEASURES[ours]] for query in in_order]
        assert found.outcomes[ours] == pytest.approx(np.array(expected), abs=1e-6)
    assert data.n_scored == len(measured)


def test_a_model_that_cannot_tell_passages_apart_does_not_profit_from_their_order():
    rows = [Row(f"q{q}", f"p{q}.{p}", int(p == 0)) for q in range(200) for p in range(4)]
    data = dataset_from(RERANKING, rows)
    found = evaluate_logits(data, np.zeros((800, 1)))
    assert gives_one_answer(found)
    chance = np.mean([1, 1 / 2, 1 / 3, 1 / 4])
    assert found.scores["map"].value == pytest.approx(chance, abs=0.06)
    assert constant_answer(data, "map") == pytest.approx(found.scores["map"].value)


def test_a_reranker_with_three_logits_is_refused():
    data = dataset_from(RERANKING, [Row("q", "p", 1), Row("q", "r", 0)])
    with pytest.raises(RequestError, match=r"head has 3 outputs, pairs needs 1 or 2 \(reranking\)"):
        evaluate_logits(data, np.zeros((2, 3)))


def test_similarity_is_the_correlation_of_cosines_with_the_numbers():
    rng = np.random.default_rng(0)
    task = Task("pairs", "similarity", METRICS_OF["similarity"], "")
    gold = np.round(rng.uniform(0, 5, 40), 1)
    data = dataset_from(task, [Row(f"a{i}", f"b{i}", float(g)) for i, g in enumerate(gold)])
    embeddings = rng.normal(size=(80, 5))
    first, second = embeddings[::2], embeddings[1::2]
    cosine = (
        (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    )
    found = evaluate_embeddings(data, embeddings)
    assert found.predictions == pytest.approx(cosine)
    spearman, pearson = scipy.stats.spearmanr(cosine, gold), scipy.stats.pearsonr(cosine, gold)
    assert found.scores["cosine_spearman"].value == pytest.approx(spearman.statistic)
    assert found.scores["cosine_pearson"].value == pytest.approx(pearson.statistic)
    dot = evaluate_embeddings(data, embeddings, similarity="dot")
    assert dot.predictions == pytest.approx((first * second).sum(1))
    assert constant_answer(data, "cosine_spearman") == 0
    assert gives_one_answer(evaluate_embeddings(data, np.ones((80, 5))))
    # An ensemble of one, whatever its scale, is that one.
    alone = evaluate_embeddings(data, ensemble_logits(task, [embeddings * 7, embeddings]))
    assert alone.predictions == pytest.approx(cosine)
    with pytest.raises(RequestError, match="expected output of 80 texts, got 40"):
        evaluate_embeddings(data, embeddings[:40])
