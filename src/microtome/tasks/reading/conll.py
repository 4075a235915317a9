"""Words with tags in columns, a blank line between sentences (CoNLL)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from microtome.errors import DataError
from microtome.tasks.reading.lines import Line, at_line, read_lines
from microtome.tasks.tags import is_tag

WORDS, TAGS = "words", "tags"
"""The columns unless others are named: the first one and the last."""

DOCUMENT_START = "-DOCSTART-"

_HEADER = re.compile(r"#\s*global\.columns\s*=\s*(.+)")

Sentence = tuple[int, list[str], list[str]]


def read_conll(path: Path, word_column: str = WORDS, tag_column: str = TAGS) -> Iterator[Sentence]:
    """The sentences of a file: the line of the first word, the words, their tags.

    Columns are divided by tabs, or by spaces where the first word's line has no tab; they are named
    by number from 1, or by a name in ``# global.columns = …``. ``-DOCSTART-`` lines and comments
    are no sentences.
    """
    table = _Table(path, word_column, tag_column)
    sentence: Sentence = 0, [], []
    for line in read_lines(path):
        if not line.text.strip(" \t"):
            if sentence[1]:
                yield sentence
            sentence = 0, [], []
        elif fields := table.fields(line, at_start=not sentence[1]):
            sentence = sentence[0] or line.number, sentence[1], sentence[2]
            sentence[1].append(fields[0])
            sentence[2].append(fields[1])
    if sentence[1]:
        yield sentence


class _Table:
    """How many columns a file has, and which of them are read: its first word decides."""

    def __init__(self, path: Path, word_column: str, tag_column: str) -> None:
        self.path = path
        self.asked = (word_column, tag_column)
        self.names: list[str] = []
        self.n_columns = 0
        self.by_tab = False
        self.places = (0, -1)

    def fields(self, line: Line, *, at_start: bool) -> tuple[str, str] | None:
        """A line's word and tag; None for a comment and for the start of a document."""
        is_first = not self.n_columns
        by_tab = "\t" in line.text if is_first else self.by_tab
        parts = line.text.split("\t") if by_tab else [p for p in line.text.split(" ") if p]
        if line.text.startswith("#") and at_start and not self._is_word(parts):
            if header := _HEADER.match(line.text):
                self.names = header[1].split()
            return None
        if parts[0] == DOCUMENT_START:
            return None
        if is_first:
            self.by_tab, self.n_columns = by_tab, len(parts)
            self.places = self._place(self.asked[0]), self._place(self.asked[1])
        if len(parts) == 1:
            raise at_line(self.path, line.number, f"expected a word and its tag, got {parts[0]!r}")
        if len(parts) != self.n_columns:
            raise at_line(
                self.path, line.number, f"expected {self.n_columns} columns, got {len(parts)}"
            )
        word, tag = parts[self.places[0]], parts[self.places[1]].strip()
        if not word.strip():
            raise at_line(self.path, line.number, "expected a word, got an empty one")
        if not is_tag(tag):
            raise at_line(
                self.path,
                line.number,
                f"expected a tag like O, B-PER or I-PER, got {tag!r}",
                "name the column of the tags: --label-column",
            )
        return word, tag

    def _is_word(self, parts: list[str]) -> bool:
        """Whether a line that begins with # is a row of the table: "#", "#nlproc"."""
        fits = len(parts) > 1 and self.n_columns in (0, len(parts))
        return fits and is_tag(parts[self.places[1]].strip())

    def _place(self, column: str) -> int:
        if column in self.names[: self.n_columns]:
            return self.names.index(column)
        if column in (WORDS, TAGS):
            return (WORDS, TAGS).index(column) * (self.n_columns - 1)
        if column in {str(number) for number in range(1, self.n_columns + 1)}:
            return int(column) - 1
        named = f", called {', '.join(self.names)}" if self.names else ""
        raise DataError(
            f"{self.path.name} has no column {column!r}",
            f"it has {self.n_columns} columns{named}; name one by its number, from 1",
        )
