"""The unlabelled texts that `studies/trimming.py` heals on, one per line; and pairs of SICK.

python studies/trimming_texts.py sentences FILE    SNLI and Wikipedia, for embedders
python studies/trimming_texts.py phrases FILE      phrases of SST-2's training trees
python studies/trimming_texts.py sick FILE.csv     SICK's 500 trial pairs, to score embedders on

No text of STS-B or SICK is among the sentences, and no phrase is part of a sentence of SST-2's dev
or test split.
"""

from __future__ import annotations

import csv
import json
import lzma
import random
import re
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from commands import DATA

N_SENTENCES = 40_000
LENGTHS = range(4, 60)  # in words


def plain(text: str) -> str:
    """The text as it is compared: its words only, in lower case."""
    return " ".join(re.findall(r"\w+", text.lower()))


def snli() -> Iterator[str]:
    with (DATA / "snli" / "snli_1.0_train_slice20k.jsonl").open() as file:
        for line in file:
            row = json.loads(line)
            yield from (row["sentence1"], row["sentence2"])


def wikipedia() -> Iterator[str]:
    with lzma.open(DATA / "text" / "wiki_00.txt.xz", "rt") as file:
        for paragraph in file:
            yield from re.split(r"(?<=[.!?]) (?=[A-Z])", paragraph.strip())


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def cells(path: Path) -> Iterator[str]:
    return chain.from_iterable(rows(path))


def sentences() -> list[str]:
    files = [*sorted((DATA / "glue" / "STS-B").glob("*.tsv")), *sorted((DATA / "sick").iterdir())]
    measured = {plain(cell) for path in files for cell in cells(path)}
    drawn = random.Random(0)
    halves = []
    for source in (snli(), wikipedia()):
        fit = {text: None for text in source if len(text.split()) in LENGTHS}
        kept = [text for text in fit if plain(text) not in measured]
        halves += drawn.sample(kept, min(N_SENTENCES // 2, len(kept)))
    drawn.shuffle(halves)
    return halves


def phrases() -> list[str]:
    folder = DATA / "sst2_sentence"
    splits = [path for path in folder.iterdir() if path.stem in ("dev", "test")]
    measured = "\n".join(f" {plain(cell)} " for path in splits for cell in cells(path))
    with (DATA / "glue" / "SST-2" / "train.tsv").open() as file:
        texts = [line.split("\t")[0].strip() for line in file][1:]
    several = [text for text in dict.fromkeys(texts) if len(text.split()) > 1]
    return [text for text in several if f" {plain(text)} " not in measured]


def sick() -> list[list[str]]:
    _, *pairs = rows(DATA / "sick" / "SICK_trial.txt")
    return [["text", "pair", "label"], *(pair[1:4] for pair in pairs)]


def main() -> None:
    kind, out = sys.argv[1:]
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    if kind == "sick":
        with Path(out).open("w", newline="") as file:
            csv.writer(file).writerows(sick())
        return
    texts = {"sentences": sentences, "phrases": phrases}[kind]()
    Path(out).write_text("".join(f"{text}\n" for text in texts))
    print(f"{len(texts):,} {kind} in {out}")


if __name__ == "__main__":
    main()
