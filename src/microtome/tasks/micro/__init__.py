"""The embedded tasks: English of our own making, with its annotation, in six tasks.

``lexicon`` (words and what they go with) → ``phrases``, ``clauses`` (trees) → one file per task
→ ``splits`` (rows without leakage). Everything is a function of the seed.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from microtome.errors import RequestError
from microtome.tasks.task import Answer, Kind, Recipe, Row, Split, Task

if TYPE_CHECKING:
    from microtome.tasks.micro.splits import MicroRow
    from microtome.tasks.micro.trees import Annotated

_PREFIX = "micro-"


def micro_rows(task: str, split: str, *, seed: int = 0) -> tuple[MicroRow, ...]:
    """The rows of an embedded task with their structures and annotation."""
    # Imported here: naming the tasks must not read the lexicon.
    from microtome.tasks.micro.splits import split_rows

    if task not in {known.name for known in TASKS}:
        raise RequestError(f"no embedded task is called {task!r}")
    module = importlib.import_module(f"{__name__}.{task.removeprefix(_PREFIX)}")
    return split_rows(task, module.STRUCTURES, split, seed=seed)


def rows(task: str, split: str, *, seed: int = 0) -> Sequence[Row]:
    """The rows of an embedded task, as every task gives them."""
    return [
        Row(
            made.example.text,
            made.example.pair,
            made.example.label
            if made.example.answers is None
            else tuple(Answer(text, start) for text, start in made.example.answers),
            made.id,
            made.cluster,
        )
        for made in micro_rows(task, split, seed=seed)
    ]


def annotated(task: str, split: str, *, seed: int = 0) -> tuple[Annotated, ...]:
    """Every sentence of a split, once, in order, with its tree, frames and pronouns."""
    found: dict[str, Annotated] = {}
    for made in micro_rows(task, split, seed=seed):
        for sentence in (*made.example.first, *made.example.second):
            found.setdefault(sentence.text, sentence)
    return tuple(found.values())


def _task(
    name: str, kind: Kind, metrics: tuple[str, ...], labels: tuple[str, ...], summary: str
) -> Task:
    from microtome.tasks.micro.sizes import SIZES

    return Task(
        name=name,
        kind=kind,
        metrics=metrics,
        summary=summary,
        splits=tuple(Split(split, size) for split, size in SIZES.items()),
        labels=labels,
        cluster_by="given",
        recipe=Recipe(learning_rate=1e-4, batch_size=32, epochs=5, max_length=64),
        rows=partial(rows, name),
    )


TASKS: tuple[Task, ...] = (
    _task(
        "micro-sentiment",
        "classification",
        ("accuracy",),
        ("negative", "positive"),
        "does the speaker approve? negation, contrast and degree decide",
    ),
    _task(
        "micro-entailment",
        "classification",
        ("accuracy",),
        ("entailment", "neutral", "contradiction"),
        "does the second sentence follow? kinds, quantifiers, denials, roles",
    ),
    _task(
        "micro-paraphrase",
        "classification",
        ("accuracy", "f1"),
        ("different", "paraphrase"),
        "do two sentences with the same words say the same?",
    ),
    _task(
        "micro-similarity",
        "regression",
        ("pearson", "spearman"),
        (),
        "how much two sentences have in common, 0 to 5",
    ),
    _task(
        "micro-acceptability",
        "classification",
        ("accuracy", "matthews"),
        ("unacceptable", "acceptable"),
        "is it English? agreement, order, arguments",
    ),
    _task(
        "micro-squad",
        "span",
        ("f1", "exact_match"),
        (),
        "questions on a short passage; half have no answer, but a plausible one",
    ),
)
