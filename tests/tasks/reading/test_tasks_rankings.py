"""BEIR folders, query-passage pairs, first-stage runs: nothing lost, unknown ids refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from microtome.errors import DataError, RequestError
from microtome.tasks import DataSpec, open_data, open_training


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def beir(folder: Path, qrels: str = "q1\td2\t2\nq1\td1\t0\nq2\td3\t1\n", split: str = "test"):
    documents = [
        {"_id": "d1", "title": "A title", "text": "a text"},
        {"_id": "d2", "title": "", "text": "no title"},
        {"_id": "d3", "text": "", "title": ""},
    ]
    queries = [{"_id": f"q{i}", "text": f"query {i}"} for i in (1, 2, 3)]
    write(folder / "corpus.jsonl", "\n".join(map(json.dumps, documents)))
    write(folder / "queries.jsonl", "\n".join(map(json.dumps, queries)))
    write(folder / "qrels" / f"{split}.tsv", f"query-id\tcorpus-id\tscore\n{qrels}")
    return folder


def test_a_beir_folder_is_queries_and_then_documents(tmp_path):
    data = open_data(DataSpec(path=beir(tmp_path / "mine")))
    assert (data.task.name, data.task.kind, data.split) == ("mine", "retrieval", "test")
    assert (len(data), data.n_queries) == (2, 2)
    texts = [row.text for row in data.rows()]
    assert texts == ["query 1", "query 2", "A title a text", "no title", ""]
    assert data.corpus is not None
    judged = zip(data.corpus.queries, data.corpus.documents, data.corpus.grades, strict=True)
    assert [tuple(map(int, one)) for one in judged] == [(0, 1, 2), (0, 0, 0), (1, 2, 1)]
    assert any("1 queries aren't judged in test" in note for note in data.notes)
    assert any("1 rows have an empty text" in note for note in data.notes)


def test_queries_without_a_relevant_document_are_left_out_and_counted(tmp_path):
    data = open_data(DataSpec(path=beir(tmp_path, "q1\td1\t0\nq3\td1\t1\n")))
    assert [row.text for row in data.rows()][:1] == ["query 3"]
    assert len(data) == 1
    assert any("1 queries without a relevant document left out" in note for note in data.notes)
    with pytest.raises(DataError, match=r"no queries with a relevant document"):
        open_data(DataSpec(path=beir(tmp_path, "q1\td1\t0\n")))


def test_some_queries_search_all_documents(tmp_path):
    data = open_data(DataSpec(path=beir(tmp_path)))
    last = data.select(np.array([1]))
    assert [row.text for row in last.rows()] == ["query 2", "A title a text", "no title", ""]
    assert last.corpus is not None
    assert last.corpus.queries.tolist() == [0]
    assert last.corpus.documents.tolist() == [2]
    assert last.content_hash != data.content_hash != data.text_hash


@pytest.mark.parametrize(
    ("qrels", "problem"),
    [
        ("q1\td9\t1\n", r"test.tsv, line 2: names the document 'd9', which corpus.jsonl doesn't"),
        ("q1\td1\t1\nq9\td1\t1\n", "line 3: names the query 'q9', which queries.jsonl doesn't"),
        ("q1\td1\tyes\n", "line 2: expected a whole number as grade, got 'yes'"),
        ("q1\td1\t1\nq1\td1\t0\n", "line 3: judges document 'd1' again, see line 2"),
        ("q1\td1\n", "line 2: expected 3 fields, got 2"),
    ],
)
def test_judgements_of_nothing_are_refused_with_their_line(tmp_path, qrels, problem):
    with pytest.raises(DataError, match=problem):
        open_data(DataSpec(path=beir(tmp_path, qrels)))


def test_a_document_twice_is_refused(tmp_path):
    folder = beir(tmp_path)
    with (folder / "corpus.jsonl").open("a") as file:
        file.write('\n{"_id": "d1", "text": "again"}\n')
    with pytest.raises(DataError, match=r"got 'document d1' at line 1 and 4"):
        open_data(DataSpec(path=folder))


def test_splits_of_a_folder(tmp_path):
    folder = beir(tmp_path)
    beir(folder, "q3\td1\t1\n", "train")
    with pytest.raises(DataError, match=r"no qrels/dev.tsv; its splits are test, train"):
        open_data(DataSpec(path=folder))
    assert len(open_data(DataSpec(path=folder, split="test"))) == 2
    train, dev = open_training(DataSpec(path=folder))
    assert (train.split, len(train), dev.split, len(dev)) == ("train", 1, "test", 2)
    (folder / "qrels" / "train.tsv").unlink()
    train, dev = open_training(DataSpec(path=folder))
    assert (len(train), len(dev)) == (1, 1)


def test_a_first_stage_run_makes_pairs_to_rerank(tmp_path):
    folder = beir(tmp_path / "mine")
    run = write(
        tmp_path / "run.trec",
        "q1 Q0 d3 1 9.5 bm25\nq1 Q0 d2 2 11 bm25\nq2 Q0 d1 1 3 bm25\nq3 Q0 d1 1 3 bm25\n",
    )
    data = open_data(DataSpec(path=folder, candidates=run))
    assert data.task.kind == "reranking"
    rows = [(row.text, row.pair, row.label) for row in data.rows()]
    assert rows == [
        ("query 1", "no title", 2),
        ("query 1", "", 0),
        ("query 2", "A title a text", 0),
    ]
    assert data.targets.tolist() == [2, 0, 0]
    assert data.clusters is not None
    assert len(np.unique(data.clusters)) == 2
    assert any("1 relevant documents aren't among the candidates" in n for n in data.notes)
    with pytest.raises(RequestError, match=r"--candidates FILE"):
        open_data(DataSpec(path=folder, kind="reranking"))
    write(run, "q1 Q0 d7 1 9.5 bm25\nq2 Q0 d1 1 3 bm25\n")
    with pytest.raises(DataError, match=r"run.trec, line 1: names the document 'd7'"):
        open_data(DataSpec(path=folder, candidates=run))
    write(run, "q1 d7 1 9.5\n")
    with pytest.raises(DataError, match=r"line 1: expected TREC's six columns"):
        open_data(DataSpec(path=folder, candidates=run))
    write(run, "q1 Q0 d1 1 9.5 bm25\n")
    with pytest.raises(DataError, match=r"no candidates for query 'q2'"):
        open_data(DataSpec(path=folder, candidates=run))


def test_json_lines_with_passages_of_each_query(tmp_path):
    lines = [
        {"query": "a?", "positive": ["yes", "right"], "negative": ["no"]},
        {"query": "a?", "positives": "one", "neg": ["none"]},
    ]
    path = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, lines)))
    data = open_data(DataSpec(path=path))
    assert data.task.kind == "reranking"
    found = {(row.text, row.pair, row.label) for row in data.rows()}
    assert found == {
        ("a?", "yes", 1), ("a?", "right", 1), ("a?", "no", 0), ("a?", "one", 1), ("a?", "none", 0)
    }  # fmt: skip
    assert data.clusters is not None
    assert len(np.unique(data.clusters)) == 2  # a line is a query, whatever its text
    write(path, '{"query": "a?", "positive": [1]}')
    with pytest.raises(DataError, match=r"line 1: expected a list of texts in 'positive'"):
        open_data(DataSpec(path=path))
    write(path, '{"query": "a?", "positive": []}')
    with pytest.raises(DataError, match=r"line 1: expected positive and negative passages"):
        open_data(DataSpec(path=path))


TABLE = "q,p,y\n" + "".join(f"query {i // 3},text {i},{int(i % 3 == 0)}\n" for i in range(30))


def test_a_table_of_pairs_is_split_and_limited_by_query(tmp_path):
    spec = DataSpec(
        path=write(tmp_path / "a.csv", TABLE), kind="reranking",
        text_column="q", pair_column="p", label_column="y",
    )  # fmt: skip
    data = open_data(spec)
    assert data.targets.tolist() == [1, 0, 0] * 10
    small = data.limit(8, seed=1)
    assert len(small) == 6
    assert {row.text for row in small.rows()} <= {row.text for row in data.limit(20, seed=1).rows()}
    train, dev = data.held_out()
    assert {row.text for row in train.rows()}.isdisjoint({row.text for row in dev.rows()})
    assert (len(train), len(dev)) == (24, 6)
    write(tmp_path / "a.csv", TABLE.replace("text 4,0", "text 4,maybe"))
    with pytest.raises(DataError, match=r"line 6: expected .*, got label 'maybe'"):
        open_data(spec)
