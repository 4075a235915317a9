"""Files of labelled texts over the tiny tokenizer's words (`from labelled_texts import …`)."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from support.tiny import WORDS


def sentences(n: int) -> list[str]:
    """Texts of two to eight words; any run of them has many words and all lengths."""
    return [
        " ".join(WORDS[(5 * i + 3 * j) % len(WORDS)] for j in range(2 + i % 7)) for i in range(n)
    ]


def write_rows(file: Path, texts: Iterable[str], labels: Iterable[int]) -> Path:
    """A table of texts that are labelled no (0) or yes (1); gives the file back."""
    rows = zip(texts, (("no", "yes")[label] for label in labels), strict=True)
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows([("text", "label"), *rows])
    return file


def write_cats(file: Path, n: int = 80) -> Path:
    """Rows that a model can learn: yes where there is a cat, and in every third row."""
    texts = [" ".join(WORDS[(5 * i + j) % len(WORDS)] for j in range(2 + i % 5)) for i in range(n)]
    return write_rows(file, texts, ["cat" in text or i % 3 == 0 for i, text in enumerate(texts)])
