"""From the fields of a table to rows: texts checked, labels read in the task's order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from microtome.errors import DataError
from microtome.tasks.reading.tables import FieldRecord, Value
from microtome.tasks.task import Answer, Columns, Label, Row, Task, UnknownLabel


class Located(NamedTuple):
    """A row and its line (or row) number, for errors that name the place."""

    number: int
    row: Row


@dataclass
class Oddities:
    """What was met while rows were read, and no reason to refuse them.

    ``broken`` are the numbers of rows that were left out; ``respelled`` counts the labels that
    differ from the task's in case only.
    """

    broken: list[int] = field(default_factory=list)
    respelled: Counter[tuple[str, str]] = field(default_factory=Counter)


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
    read_label = label_reader(task, oddities)
    n_texts = 1 if columns.pair is None else 2
    for number, values in records:
        try:
            text = checked_text(columns.text, values[0])
            pair = None if columns.pair is None else checked_text(columns.pair, values[1])
            label = None if columns.label is None else read_label(values[n_texts])
        except UnreadableError as reason:
            raise DataError(f"{path.name}, {unit} {number}: {reason}") from reason
        id = str(values[-1]) if with_id and values[-1] is not None else None
        yield Located(number, Row(text, pair, label, id))


def column_order(columns: Columns, *, with_id: bool) -> tuple[str, ...]:
    """The columns in the order that ``rows_of`` expects their values."""
    return columns.named + ((columns.id,) if with_id and columns.id is not None else ())


def label_reader(task: Task, oddities: Oddities) -> Callable[[Value], Label]:
    """How a label is read: a name (in any case) or its index, a number, or accepted answers."""
    if task.kind == "regression":
        return _number
    if task.kind == "span":
        return _answers
    indices = {name: index for index, name in enumerate(task.labels)}
    if not any(name.lstrip("-").isdigit() for name in task.labels):
        indices |= {str(index): index for index in range(len(task.labels))}
    folded = Counter(name.casefold() for name in task.labels)
    in_any_case = {n.casefold(): n for n in task.labels if folded[n.casefold()] == 1}
    # The hub writes -1 where the files write their no-label mark.
    no_label = {task.no_label, "-1"} if task.no_label else set()

    def read(value: Value) -> Label:
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
            answers = [answer for answer in value if isinstance(answer, dict)]
            return tuple(_answer(answer["text"], answer["answer_start"]) for answer in answers)
    except (KeyError, ValueError) as error:
        raise UnreadableError(f"answers without texts and answer_start ({error})") from error
    raise UnreadableError(f"expected answers with text and answer_start, got {shown(value)}")


def _answer(text: object, start: object) -> Answer:
    if not isinstance(text, str) or not isinstance(start, int) or start < 0:
        raise UnreadableError(
            f"expected an answer's text and first character, got {shown(text)} at {shown(start)}"
        )
    return Answer(text, start)


def shown(value: object) -> str:
    """A value of a file in a message: not longer than a line."""
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"
