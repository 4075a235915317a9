"""Rows of the splits: seeded, without leakage.

Training text uses neither held-out words nor held-out structures. No text (no pair) occurs in two
splits, nor twice in one. A minimal set shares its ``cluster``: its rows aren't independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from micro.examples import Example, Structure
from micro.grammar import lexicon
from micro.grammar.draw import Draw, NoWordError
from microtome.errors import RequestError
from microtome.tasks.annotation.gold import GoldRow
from microtome.tasks.embedded import SIZES

# A fresh draw repeats an earlier text now and then; that it does so always is a fault.
MAX_TRIES = 60


def split_rows(
    task: str, structures: Sequence[Structure], split: str, *, seed: int = 0
) -> tuple[GoldRow, ...]:
    """The rows of one split."""
    if split not in SIZES:
        raise RequestError(f"expected one of {', '.join(SIZES)}, got split {split!r}")
    return all_splits(task, tuple(structures), seed)[split]


@cache
def all_splits(
    task: str, structures: tuple[Structure, ...], seed: int
) -> dict[str, tuple[GoldRow, ...]]:
    """Every split of a task: they are made together, since no text may occur in two of them."""
    taken: set[tuple[str, str | None]] = set()
    return {
        split: tuple(_fill(task, structures, split, seed, taken))[: SIZES[split]] for split in SIZES
    }


def _fill(
    task: str,
    structures: tuple[Structure, ...],
    split: str,
    seed: int,
    taken: set[tuple[str, str | None]],
) -> Iterator[GoldRow]:
    draw = Draw(lexicon.load(), f"{task}/{split}/{seed}", held_out=split != "train")
    allowed = [s for s in structures if split != "train" or not s.held_out]
    deck = [s for s in allowed for _ in range(s.weight)]
    n_rows = n_sets = 0
    while n_rows < SIZES[split]:
        draw.random.shuffle(deck)
        for structure in deck:
            n_sets += 1
            for example in _fresh(structure, draw, taken):
                yield GoldRow(
                    f"{task}-{split}-{n_rows}",
                    f"{task}-{split}-s{n_sets}",
                    structure.name,
                    example.text,
                    example.pair,
                    example.label,
                    example.first,
                    example.second,
                )
                n_rows += 1


def _fresh(structure: Structure, draw: Draw, taken: set[tuple[str, str | None]]) -> list[Example]:
    """A minimal set none of whose texts has been seen."""
    for _ in range(MAX_TRIES):
        try:
            examples = structure.build(draw)
        except NoWordError:
            continue
        keys = {(example.text, example.pair) for example in examples}
        if len(keys) == len(examples) and taken.isdisjoint(keys):
            taken |= keys
            return examples
    raise RequestError(f"structure {structure.name} has no new sentences left")
