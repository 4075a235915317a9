"""Sentences for the benchmarks of embedders, and the embedder that reads them."""

from __future__ import annotations

import csv
import lzma
import os
import re
from pathlib import Path

from microtome.models.source import minilm_folder
from microtome.tasks import DataSpec, open_data

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("MICROTOME_TEST_DATA", ROOT.parent / "shared"))


def embedder() -> Path:
    """all-MiniLM, a sentence-transformers folder (extra ``english``)."""
    folder = minilm_folder()
    assert folder is not None, "the benchmarks of embedders need the extra `english`"
    return folder


def sentences(n_texts: int) -> tuple[list[str], str]:
    """Sentences of STS-B where it is at hand, else of an embedded task; and where they are from."""
    path = SHARED / "data/glue/STS-B/dev.tsv"
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        found, origin = [row[name] for row in rows for name in ("sentence1", "sentence2")], "STS-B"
    else:
        pairs = open_data(DataSpec("micro-similarity")).rows()
        found = [text for row in pairs for text in (row.text, row.pair or "")]
        origin = "micro-similarity"
    return found[:n_texts], origin


def mixed_sentences(n_texts: int) -> tuple[list[str], str] | None:
    """As many of Wikipedia's sentences as of :func:`sentences`, by turns: short ones and long ones.

    Nothing where Wikipedia's text isn't at hand.
    """
    path = SHARED / "data/text/wiki_00.txt.xz"
    if not path.exists():
        return None
    short, origin = sentences(n_texts // 2)
    long: list[str] = []
    with lzma.open(path, "rt", encoding="utf-8") as file:
        while len(long) < len(short):
            found = re.split(r"(?<=[.!?]) (?=[A-Z])", next(file).strip())
            long += [text for text in found if len(text.split()) >= 4]
    by_turns = [text for pair in zip(short, long, strict=False) for text in pair]
    return by_turns, f"{origin} and Wikipedia"


def long_texts(n_texts: int, n_words: int) -> list[str]:
    """Texts of so many words, put together from sentences."""
    words = " ".join(sentences(10_000)[0]).split()
    return [" ".join(words[i * n_words : (i + 1) * n_words]) for i in range(n_texts)]
