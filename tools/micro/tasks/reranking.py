"""micro-reranking: the questions of micro-retrieval, each with four sentences of its split.

One question of every minimal set, so that queries are independent; its sentences are those of the
set, then the ones that share most words with it. At least one answers it, at most three do.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from micro.examples import DOCUMENT
from microtome.tasks.annotation.gold import GoldRow
from microtome.tasks.task import Judgement

N_PASSAGES = 4


def pairs(name: str, rows: Sequence[GoldRow], n_rows: int) -> tuple[GoldRow, ...]:
    """``n_rows`` rows of a question and a sentence, from the judged rows of retrieval.

    ``name`` begins the ids; the cluster of a row is its question.
    """
    questions = {row.cluster: row for row in reversed(rows) if row.label is not None}
    documents = [row for row in rows if row.label is None]
    lemmas = [_lemmas(document) for document in documents]
    made: list[GoldRow] = []
    for question in reversed(questions.values()):
        for passage, grade in _candidates(question, documents, lemmas):
            made.append(_pair(f"{name}-{len(made)}", question, passage, grade))
        if len(made) >= n_rows:
            break
    return tuple(made[:n_rows])


def _candidates(
    question: GoldRow, documents: Sequence[GoldRow], lemmas: Sequence[frozenset[str]]
) -> Iterator[tuple[GoldRow, int]]:
    """The nearest sentences, shuffled: ties are broken by order, which must not tell the grade."""
    asked = _lemmas(question)

    def distance(place: int) -> tuple[bool, int, int]:
        same_set = documents[place].cluster == question.cluster
        return not same_set, -len(asked & lemmas[place]), place

    assert isinstance(question.label, tuple)
    relevant = {j.document for j in question.label if isinstance(j, Judgement)}
    near = sorted(range(len(documents)), key=distance)
    answers = [place for place in near if _name(documents[place]) in relevant]
    others = [place for place in near if _name(documents[place]) not in relevant]
    answers = answers[: N_PASSAGES - 1]
    chosen = answers + others[: N_PASSAGES - len(answers)]
    random.Random(question.id).shuffle(chosen)
    for place in chosen:
        yield documents[place], int(place in answers)


def _pair(id: str, question: GoldRow, passage: GoldRow, grade: int) -> GoldRow:
    return replace(
        question, id=id, cluster=question.id, pair=passage.text, label=grade, second=passage.first
    )


def _name(document: GoldRow) -> str:
    return document.id.removeprefix(DOCUMENT)


def _lemmas(row: GoldRow) -> frozenset[str]:
    return frozenset(
        word.lemma
        for part in row.first
        for word in part.sentence.words
        if word.upos in ("NOUN", "PROPN", "VERB")
    )
