"""BEIR folders: queries, documents, and which documents are relevant to which query.

``corpus.jsonl`` and ``queries.jsonl`` have ``_id`` and ``text`` (documents also ``title``);
``qrels/SPLIT.tsv`` has a header line and query, document, grade. A first-stage run in TREC's format
(query Q0 document rank score name) makes the folder one of pairs to rerank.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from microtome.errors import DataError
from microtome.tasks.reading.lines import at_line, read_lines, without_blank_end
from microtome.tasks.reading.rows import (
    LARGEST_GRADE,
    Located,
    Oddities,
    UnreadableError,
    checked_text,
    number_of,
    utf8_text,
)
from microtome.tasks.reading.sources import RowSource
from microtome.tasks.reading.tables import read_objects, read_records
from microtome.tasks.task import Judgement, Row, task_of_data

CORPUS, QUERIES = "corpus.jsonl", "queries.jsonl"


@dataclass
class _Qrels:
    """Judgements of each query, and the line that names a document first."""

    path: Path
    of_query: dict[str, list[Judgement]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    query_lines: dict[str, int] = field(default_factory=dict)


def is_beir(folder: Path) -> bool:
    """Whether a folder is one: it has a corpus."""
    return (folder / CORPUS).is_file()


def beir_splits(folder: Path) -> tuple[str, ...]:
    """The splits that have judgements."""
    return tuple(sorted(path.stem for path in (folder / "qrels").glob("*.tsv")))


def beir_source(folder: Path, split: str | None, candidates: Path | None = None) -> RowSource:
    """Queries and documents of a split, or with ``candidates`` query-passage pairs to rerank.

    Without a name it is dev where that exists, else the only one.
    """
    splits = beir_splits(folder)
    if split is None:
        split = "dev" if "dev" in splits else splits[0] if len(splits) == 1 else None
    if split not in splits:
        there = ", ".join(splits) or "none"
        raise DataError(
            f"{folder} has no qrels/{split or 'dev'}.tsv", f"its splits are {there}: --split"
        )
    if candidates is not None and not candidates.is_file():
        raise DataError(f"no file {candidates} (--candidates)")
    name = folder.resolve().name
    task = (
        task_of_data(name, "retrieval")
        if candidates is None
        else task_of_data(name, "reranking", cluster_by="given")
    )

    def rows(oddities: Oddities) -> Iterator[Located]:
        qrels = _qrels(folder / "qrels" / f"{split}.tsv")
        if candidates is None:
            return _read(folder, qrels, oddities)
        return _read_candidates(folder, qrels, candidates, oddities)

    return RowSource(task, split, rows, labelled=True, path=folder / CORPUS)


def _qrels(path: Path) -> _Qrels:
    found = _Qrels(path)
    records = read_records(path, "tsv", ("query-id", "corpus-id", "score"))
    seen: dict[tuple[str, str], int] = {}
    for number, (query, document, score) in records:
        grade = number_of(score)
        if grade is None or grade != int(grade) or abs(grade) > LARGEST_GRADE:
            raise at_line(path, number, f"expected a whole number as grade, got {score!r}")
        key = str(query), str(document)
        if key in seen:
            raise at_line(path, number, f"judges document {key[1]!r} again, see line {seen[key]}")
        seen[key] = number
        found.of_query.setdefault(key[0], []).append(Judgement(key[1], int(grade)))
        found.query_lines.setdefault(key[0], number)
        found.lines.setdefault(key[1], number)
    return found


def _read(folder: Path, qrels: _Qrels, oddities: Oddities) -> Iterator[Located]:
    """Queries with a relevant document, then every document."""
    for number, id, text in _queries(folder, qrels, oddities):
        judged = tuple(qrels.of_query[id])
        if any(judgement.grade > 0 for judgement in judged):
            yield Located(number, Row(text, None, judged, f"query {id}"))
        else:
            oddities.n_irrelevant += 1
    missing = dict(qrels.lines)
    for number, id, text in _documents(folder):
        missing.pop(id, None)
        yield Located(number, Row(text, id=f"document {id}"))
    _check_known(qrels.path, "document", missing, CORPUS)


def _read_candidates(
    folder: Path, qrels: _Qrels, candidates: Path, oddities: Oddities
) -> Iterator[Located]:
    """Every query with its candidates, in the order of the run."""
    runs, lines = _run(candidates)
    missing = dict(lines)
    wanted = {document for run in runs.values() for _, document in run}
    texts = {}
    for _, id, text in _documents(folder):
        missing.pop(id, None)
        if id in wanted:
            texts[id] = text
    _check_known(candidates, "document", missing, CORPUS)
    for _, query, text in _queries(folder, qrels, oddities):
        if query not in runs:
            raise DataError(f"{candidates.name} has no candidates for query {query!r}")
        grades = dict(qrels.of_query[query])
        for number, document in runs[query]:
            grade = max(0, grades.pop(document, 0))
            pair = f"query {query}, document {document}"
            yield Located(number, Row(text, texts[document], grade, pair, query))
        oddities.n_missed += sum(grade > 0 for grade in grades.values())


def _run(path: Path) -> tuple[dict[str, list[tuple[int, str]]], dict[str, int]]:
    """The documents of each query, best first, with their lines; each document's first line."""
    ranked: dict[str, list[tuple[float, int, str]]] = {}
    for line in without_blank_end(path, read_lines(path)):
        fields = line.text.split()
        score = number_of(fields[4]) if len(fields) == 6 else None
        if score is None:
            raise at_line(
                path, line.number, "expected TREC's six columns: query Q0 document rank score name"
            )
        ranked.setdefault(fields[0], []).append((-score, line.number, fields[2]))
    runs: dict[str, list[tuple[int, str]]] = {}
    lines: dict[str, int] = {}
    for query, found in ranked.items():
        documents = [document for _, _, document in found]
        if len(set(documents)) < len(documents):
            raise DataError(f"{path.name} ranks a document twice for query {query!r}")
        runs[query] = [(number, document) for _, number, document in sorted(found)]
        for number, document in runs[query]:
            lines.setdefault(document, number)
    return runs, lines


def _queries(folder: Path, qrels: _Qrels, oddities: Oddities) -> Iterator[tuple[int, str, str]]:
    """Number, id and text of the queries that the split judges."""
    missing = dict(qrels.query_lines)
    for number, id, fields in _objects(folder / QUERIES):
        if id in qrels.of_query:
            missing.pop(id, None)
            yield number, id, _text(folder / QUERIES, number, fields, "text")
        else:
            oddities.n_unjudged += 1
    _check_known(qrels.path, "query", missing, QUERIES)


def _documents(folder: Path) -> Iterator[tuple[int, str, str]]:
    path = folder / CORPUS
    for number, id, fields in _objects(path):
        title = _text(path, number, fields, "title") if fields.get("title") else ""
        yield number, id, f"{title} {_text(path, number, fields, 'text')}".strip()


def _objects(path: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    for number, fields in read_objects(path):
        if "_id" not in fields or "text" not in fields:
            there = ", ".join(map(repr, fields))
            raise at_line(path, number, "expected '_id' and 'text'", f"its fields are {there}")
        yield number, utf8_text(fields["_id"]), fields


def _text(path: Path, number: int, fields: dict[str, Any], name: str) -> str:
    try:
        return checked_text(name, fields[name])
    except UnreadableError as reason:
        raise at_line(path, number, str(reason)) from reason


def _check_known(path: Path, what: str, missing: dict[str, int], file: str) -> None:
    if missing:
        id, number = next(iter(missing.items()))
        more = f", and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise at_line(path, number, f"names the {what} {id!r}{more}, which {file} doesn't have")
