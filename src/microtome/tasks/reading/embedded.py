"""The rows of the embedded tasks, with and without their gold annotation.

A parquet file per task and split, written by ``tools/micro/write.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from microtome.errors import RequestError
from microtome.tasks.annotation.gold import Annotated, Element, Frame, GoldRow
from microtome.tasks.annotation.treebanks import Sentence, Word
from microtome.tasks.catalogue import find_split, find_task
from microtome.tasks.embedded import TASKS
from microtome.tasks.reading.tables import read_records
from microtome.tasks.task import Answer, Judgement, Kind, Label, Row

FOLDER = Path(__file__).resolve().parents[2] / "embedded" / "tasks"
GOLD_COLUMNS = tuple(GoldRow.__dataclass_fields__)


@cache
def embedded_rows(task: str, split: str) -> Sequence[Row]:
    """The rows of an embedded task, without their annotation.

    embedded_rows("micro-sentiment", "dev")[0].text
    """
    kind = find_task(task).kind
    return tuple(
        Row(text, pair, _label(kind, label), id, cluster, _words(kind, text))
        for text, pair, label, id, cluster in _records(task, split, Row._fields[:-1])
    )


@lru_cache(maxsize=3)  # the training rows with their words take some 50 MB
def gold_rows(task: str, split: str) -> Sequence[GoldRow]:
    """The rows of an embedded task with the annotation that they were made with.

    ``first`` are the sentences of a row's text, ``second`` those of its pair:

    question = gold_rows("micro-squad", "dev")[0].first[0]
    [(word.form, word.upos, word.relation) for word in question.sentence.words]
    """
    kind = find_task(task).kind
    return tuple(
        GoldRow(
            id,
            cluster,
            structure,
            text,
            pair,
            _label(kind, label),
            _sentences(one),
            _sentences(two),
        )
        for id, cluster, structure, text, pair, label, one, two in _records(
            task, split, GOLD_COLUMNS
        )
    )


def gold_sentences(task: str, split: str) -> tuple[Annotated, ...]:
    """Every sentence of a split once, in order."""
    by_text: dict[str, Annotated] = {}
    for row in gold_rows(task, split):
        for annotated in row.sentences:
            by_text.setdefault(annotated.text, annotated)
    return tuple(by_text.values())


def _records(task: str, split: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    known = find_task(task)
    if not known.embedded:
        names = ", ".join(task.name for task in TASKS)
        raise RequestError(f"expected an embedded task, got {task}", f"there are {names}")
    path = embedded_file(task, split)
    return (record.values for record in read_records(path, "parquet", columns))


def embedded_file(task: str, split: str) -> Path:
    """Where the rows of an embedded task are, with their annotation."""
    known = find_task(task)
    return FOLDER / known.name / f"{find_split(known, split).name}.parquet"


def _label(kind: Kind, value: Any) -> Label:  # noqa: ANN401  # a value out of a parquet file
    """A class, a number, or a list: answers, judgements, the words' tags, the labels that apply."""
    if not isinstance(value, list):
        return value  # type: ignore[no-any-return]
    if kind == "spans":
        return tuple(Answer(**answer) for answer in value)
    if kind == "retrieval":
        return tuple(Judgement(**judgement) for judgement in value)
    return frozenset(value) if kind == "multilabel" else tuple(value)


def _words(kind: Kind, text: str) -> tuple[str, ...] | None:
    """The words of a row of tokens, which its text has with single spaces between."""
    return tuple(text.split(" ")) if kind == "tokens" else None


def _sentences(values: list[dict[str, Any]]) -> tuple[Annotated, ...]:
    return tuple(
        Annotated(
            Sentence(value["text"], tuple(Word(**word) for word in value["words"])),
            tuple(_frame(**frame) for frame in value["frames"]),
            tuple((link["pronoun"], link["noun"]) for link in value["pronouns"]),
        )
        for value in values
    )


def _frame(name: str, target: int, elements: list[dict[str, Any]]) -> Frame:
    return Frame(name, target, tuple(Element(**element) for element in elements))
