"""Rows of the splits: seeded, without leakage.

Training text uses neither held-out words nor held-out structures. No text (no pair) occurs in two
splits, nor twice in one. A minimal set shares its ``cluster``: its rows aren't independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from micro.examples import DOCUMENT, Example, Structure
from micro.grammar import lexicon
from micro.grammar.draw import Draw, NoWordError
from microtome.errors import RequestError
from microtome.tasks.annotation.gold import GoldRow
from microtome.tasks.catalogue import find_split, find_task
from microtome.tasks.task import Split

# A fresh draw repeats an earlier text now and then; that it does so always is a fault.
MAX_TRIES = 60


def split_rows(
    task: str, structures: Sequence[Structure], split: str, *, seed: int = 0
) -> tuple[GoldRow, ...]:
    """The rows of one split."""
    find_split(find_task(task), split)
    return all_splits(task, tuple(structures), seed)[split]


@cache
def all_splits(
    task: str, structures: tuple[Structure, ...], seed: int
) -> dict[str, tuple[GoldRow, ...]]:
    """Every split of a task: they are made together, since no text may occur in two of them."""
    taken: set[tuple[str, str | None]] = set()
    return {
        split.name: tuple(_fill(task, structures, split, seed, taken))
        for split in find_task(task).splits
    }


def _fill(
    task: str,
    structures: tuple[Structure, ...],
    split: Split,
    seed: int,
    taken: set[tuple[str, str | None]],
) -> Iterator[GoldRow]:
    """The rows of a split; documents, which have no label, come after the others."""
    name = f"{task}-{split.name}"
    made = list(_sets(task, structures, split, seed, taken))
    labelled = [each for each in made if each[2].label is not None]
    documents = [each for each in made if each[2].label is None]
    for prefix, part in ((name, labelled[: split.n_rows]), (f"{DOCUMENT}{name}", documents)):
        for number, (n_set, structure, example) in enumerate(part):
            yield GoldRow(
                f"{prefix}-{number}",
                f"{name}-s{n_set}",
                structure.name,
                example.text,
                example.pair,
                example.label,
                example.first,
                example.second,
            )


def _sets(
    task: str,
    structures: tuple[Structure, ...],
    split: Split,
    seed: int,
    taken: set[tuple[str, str | None]],
) -> Iterator[tuple[int, Structure, Example]]:
    """Minimal sets, numbered, until there are enough rows with a label."""
    is_train = split.name == "train"
    draw = Draw(lexicon.load(), f"{task}/{split.name}/{seed}", held_out=not is_train)
    allowed = [s for s in structures if not is_train or not s.held_out]
    deck = [s for s in allowed for _ in range(s.weight)]
    n_rows = n_sets = 0
    while n_rows < split.n_rows:
        draw.random.shuffle(deck)
        for structure in deck:
            n_sets += 1
            for example in _fresh(structure, draw, taken):
                yield n_sets, structure, example
                n_rows += example.label is not None


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
