"""SQuAD's JSON as rows: question, passage, accepted answers; the article is the cluster.

Articles are decoded one at a time, so the objects in memory don't grow with the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TypedDict, cast

from microtome.errors import DataError
from microtome.tasks.reading.lines import check_readable
from microtome.tasks.reading.rows import (
    Located,
    Oddities,
    UnreadableError,
    checked_text,
    label_reader,
    utf8_text,
)
from microtome.tasks.task import Row, Task

_DATA = re.compile(r'"data"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")


class _Article(TypedDict):
    title: str
    paragraphs: list[dict[str, object]]


def squad_rows(task: Task, path: Path) -> Iterator[Located]:
    """Every question of the file, numbered from 1."""
    number = count(1)
    for article in _articles(path):
        try:
            yield from _article_rows(task, article, number)
        except UnreadableError as reason:
            at = f"{path.name}, question {next(number)}"
            raise DataError(f"{at}: {reason}") from reason
        except (KeyError, TypeError, AttributeError) as error:
            at = f"{path.name}, question {next(number)}"
            raise DataError(f"{at}: not in SQuAD's shape ({error!r})") from error


def _article_rows(task: Task, article: _Article, number: count[int]) -> Iterator[Located]:
    read_answers = label_reader(task, Oddities())
    for paragraph in article["paragraphs"]:
        context = checked_text("context", paragraph["context"])
        for question in cast(list[dict[str, object]], paragraph["qas"]):
            # "plausible_answers" of an impossible question aren't answers.
            impossible = question.get("is_impossible", False)
            label = () if impossible else read_answers(cast(list[object], question["answers"]))
            row = Row(
                text=checked_text("question", question["question"]),
                pair=context,
                label=label,
                id=utf8_text(question["id"]),
                cluster=utf8_text(article.get("title", "")),
            )
            yield Located(next(number), row)


def _articles(path: Path) -> Iterator[_Article]:
    check_readable(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name} isn't UTF-8 (byte {error.start + 1})") from error
    start = _DATA.search(text)
    if start is None:
        raise DataError(f'expected a SQuAD file, {path.name} has no "data"')
    at = start.end()
    decoder = json.JSONDecoder()
    try:
        while not text.startswith("]", at := _skip(text, at)):
            article, at = decoder.raw_decode(text, at)
            yield article
        # What is around the articles must be JSON, too: a file that was cut off is no data set.
        around = json.loads(text[: start.end()] + text[at:])
    except (ValueError, RecursionError) as error:
        line = text.count("\n", 0, at) + 1
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise DataError(f"{path.name}, line {line}: broken JSON ({reason})") from error
    if not isinstance(around, dict) or around.get("data") != []:
        raise DataError(f'{path.name}: expected an object with one "data" that holds all articles')


def _skip(text: str, at: int) -> int:
    space = _BETWEEN.match(text, at)
    return space.end() if space else at
