"""From the fields of a table to rows: texts checked, labels read in the task's order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from microtome.errors import DataError
from microtome.tasks.reading.tables import FieldRecord, Value
from microtome.tasks.tags import strict_tags
from microtome.tasks.task import Answer, Columns, Label, Row, Task, UnknownLabel

LARGEST_GRADE = 1_000_000
"""Of relevance: far beyond what anybody gives, far below what a whole number of 64 bits holds."""


class Located(NamedTuple):
    """A row and its line (or row) number, for errors that name the place."""

    number: int
    row: Row


@dataclass
class Oddities:
    """What was met while rows were read, and no reason to refuse them.

    ``broken`` are the numbers of rows that were left out; ``respelled`` counts the labels that
    differ from the task's in case only; ``n_implied`` the entities that begin without a B.
    Of queries: how many have no relevant document, how many the split doesn't judge, and how many
    relevant documents the first stage missed.
    """

    broken: list[int] = field(default_factory=list)
    respelled: Counter[tuple[str, str]] = field(default_factory=Counter)
    n_implied: int = 0
    n_irrelevant: int = 0
    n_unjudged: int = 0
    n_missed: int = 0


class UnreadableError(Exception):
    """The short reason; the place is added once, where it is known."""


def rows_of(
    task: Task,
    path: Path,
    records: Iterator[FieldRecord],
    columns: Columns,
    oddities: Oddities,
    *,
    with_id: bool,
    unit: str = "line",
) -> Iterator[Located]:
    """Rows from records that hold text, pair, label and id, as far as ``columns`` names them."""
    read_label = label_reader(task, oddities, columns.separator)
    n_texts = 1 if columns.pair is None else 2
    for number, values in records:
        words: tuple[str, ...] | None = None
        label: Label = None
        try:
            if task.kind == "tokens":
                words = _words(columns.text, values[0])
            text = checked_text(columns.text, values[0] if words is None else " ".join(words))
            pair = None if columns.pair is None else checked_text(columns.pair, values[1])
            if columns.labels:
                label = _marked(columns.labels, values[n_texts : n_texts + len(columns.labels)])
            elif columns.label is not None:
                label = read_label(values[n_texts])
            if words is not None and isinstance(label, tuple) and len(label) != len(words):
                raise UnreadableError(
                    f"expected a tag for each of {len(words)} words, got {len(label)}"
                )
        except UnreadableError as reason:
            raise DataError(f"{path.name}, {unit} {number}: {reason}") from reason
        id = utf8_text(values[-1]) if with_id and values[-1] is not None else None
        yield Located(number, Row(text, pair, label, id, words=words))


def column_order(columns: Columns, *, with_id: bool) -> tuple[str, ...]:
    """The columns in the order that ``rows_of`` expects their values."""
    return columns.named + ((columns.id,) if with_id and columns.id is not None else ())


def label_reader(
    task: Task, oddities: Oddities, separator: str | None = None
) -> Callable[[Value], Label]:
    """How a label is read: a name (in any case) or its index, a number, answers, tags, a list.

    ``separator`` divides the labels of a multi-label row.
    """
    if task.kind in ("regression", "similarity"):
        return _number
    if task.kind == "spans":
        return _answers
    if task.kind == "reranking":
        return _grade
    read_one = _index_reader(task, oddities)
    if task.kind == "multilabel":
        return partial(_several, read_one, separator)
    if task.kind == "tokens":
        return partial(_tags, task, oddities)
    return read_one


def _index_reader(task: Task, oddities: Oddities) -> Callable[[Value], int | UnknownLabel | None]:
    indices = {name: index for index, name in enumerate(task.labels)}
    if not any(name.lstrip("-").isdigit() for name in task.labels):
        indices |= {str(index): index for index in range(len(task.labels))}
    folded = Counter(name.casefold() for name in task.labels)
    in_any_case = {n.casefold(): n for n in task.labels if folded[n.casefold()] == 1}
    # The hub writes -1 where the files write their no-label mark.
    no_label = {task.no_label, "-1"} if task.no_label else set()

    def read(value: Value) -> int | UnknownLabel | None:
        name = label_name(value)
        if name in no_label:
            return None
        if name not in indices and name.casefold() in in_any_case:
            known = in_any_case[name.casefold()]
            oddities.respelled[name, known] += 1
            return indices[known]
        return indices.get(name, UnknownLabel(name))

    return read


def label_name(value: Value) -> str:
    """A label as text: what a csv, a JSON and a parquet file write for the same one."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip() if isinstance(value, (str, int, float)) else ""


def number_of(value: Value) -> float | None:
    """A label as a finite number, or None if it isn't one."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _number(value: Value) -> float | UnknownLabel:
    number = number_of(value)
    return UnknownLabel(str(value)) if number is None else number


def _grade(value: Value) -> int | UnknownLabel:
    """How relevant a passage is: 0 or 1, or a whole number where there are grades."""
    number = float(value) if isinstance(value, bool) else number_of(value)
    if number is None or not 0 <= number <= LARGEST_GRADE or number != int(number):
        return UnknownLabel(str(value))
    return int(number)


def _several(
    read_one: Callable[[Value], int | UnknownLabel | None], separator: str | None, value: Value
) -> Label:
    """The labels of a list, or of a text that ``separator`` divides; none at all is an answer."""
    labels = set()
    for name in split_labels(value, separator):
        label = read_one(name)
        if not isinstance(label, int):
            return UnknownLabel(label_name(name))
        labels.add(label)
    return frozenset(labels)


def split_labels(value: Value, separator: str | None) -> list[Value]:
    """The names in a multi-label field."""
    if isinstance(value, list):
        odd = next((name for name in value if not isinstance(name, (str, int, float))), value)
        if odd is not value:
            raise UnreadableError(f"expected a list of labels, got {shown(odd)} in it")
        return value
    if value is None or separator is None:
        raise UnreadableError(f"expected a list of labels, got {shown(value)}")
    return [name.strip() for name in str(value).split(separator) if name.strip()]


def _marked(columns: tuple[str, ...], values: Sequence[Value]) -> frozenset[int]:
    """The columns that are 1."""
    for column, value in zip(columns, values, strict=True):
        if label_name(value) not in _MARKS:
            raise UnreadableError(f"expected 0 or 1 in {column!r}, got {shown(value)}")
    return frozenset(i for i, value in enumerate(values) if _MARKS[label_name(value)])


_MARKS = {"0": False, "1": True, "false": False, "true": True}


def _words(column: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise UnreadableError(f"expected a list of words in {column!r}, got {shown(value)}")
    words = tuple(checked_text(column, word) for word in value)
    if not all(word.strip() for word in words):
        raise UnreadableError(f"expected words in {column!r}, got an empty one")
    return words


def _tags(task: Task, oddities: Oddities, value: Value) -> Label:
    """A label index for each word, from tags of any scheme or from indices."""
    if not isinstance(value, list):
        raise UnreadableError(f"expected a list of tags, got {shown(value)}")
    try:
        names = [_tag_name(task, tag) for tag in value]
        strict, n_new = strict_tags(names)
    except ValueError as error:
        raise UnreadableError(str(error)) from error
    oddities.n_implied += n_new
    return indices_of(task, strict)


def _tag_name(task: Task, tag: object) -> str:
    """A tag, or the one that a number stands for; -1 and -100 are no tags, but marks of padding."""
    if isinstance(tag, str):
        return tag
    if type(tag) is int and 0 <= tag < len(task.labels):
        return task.labels[tag]
    raise UnreadableError(f"expected a tag or its number, got {shown(tag)}")


def indices_of(task: Task, tags: Sequence[str]) -> tuple[int, ...] | UnknownLabel:
    """Strict tags as indices into the task's labels."""
    known = {name: index for index, name in enumerate(task.labels)}
    unknown = next((tag for tag in tags if tag not in known), None)
    return UnknownLabel(unknown) if unknown is not None else tuple(known[tag] for tag in tags)


def checked_text(column: str, value: object) -> str:
    """``value`` if it is a text that every tokenizer can take."""
    if not isinstance(value, str):
        raise UnreadableError(f"expected a text in {column!r}, got {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UnreadableError(f"{column!r} holds half a character (a lone surrogate)") from None
    return value


def _answers(value: Value) -> tuple[Answer, ...]:
    """SQuAD's answers: ``{"text": [...], "answer_start": [...]}`` or a list of pairs of them."""
    try:
        if isinstance(value, dict):
            texts, starts = value["text"], value["answer_start"]
            if isinstance(texts, list) and isinstance(starts, list):
                return tuple(_answer(*pair) for pair in zip(texts, starts, strict=True))
        if isinstance(value, list):
            return tuple(_answer(answer["text"], answer["answer_start"]) for answer in value)
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableError(f"answers without texts and answer_start ({error})") from error
    raise UnreadableError(f"expected answers with text and answer_start, got {shown(value)}")


def _answer(text: object, start: object) -> Answer:
    if not isinstance(text, str) or not isinstance(start, int) or start < 0:
        raise UnreadableError(
            f"expected an answer's text and first character, got {shown(text)} at {shown(start)}"
        )
    return Answer(checked_text("answers", text), start)


def utf8_text(value: object) -> str:
    """An id or a title as text; half a character in it is replaced, since hashes are of bytes."""
    return str(value).encode("utf-8", "replace").decode()


def shown(value: object) -> str:
    """A value of a file in a message: not longer than a line."""
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"
