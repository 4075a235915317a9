"""The generator of the embedded tasks: English of our own making, with its annotation.

``grammar`` (words and what they go with, phrases, clauses, trees) → ``tasks`` (one file per task)
→ ``splits`` (rows without leakage) → ``write.py`` (the parquet files that ship with the package).
Everything is a function of the seed; seed 0 ships.
"""

from __future__ import annotations

import importlib
from functools import cache

from micro.splits import split_rows
from micro.tasks import reranking, retrieval
from microtome.errors import RequestError
from microtome.tasks.annotation.gold import GoldRow
from microtome.tasks.catalogue import find_split, find_task
from microtome.tasks.embedded import TASKS


def generated_rows(task: str, split: str, *, seed: int = 0) -> tuple[GoldRow, ...]:
    """The rows of a split of ``task``, made anew."""
    names = [known.name for known in TASKS]
    if task not in names:
        raise RequestError(f"expected one of {', '.join(names)}, got task {task!r}")
    if find_task(task).kind == "reranking":
        return _reranked(task, find_split(find_task(task), split).name, seed)
    module = importlib.import_module(f"micro.tasks.{task.removeprefix('micro-')}")
    rows = split_rows(task, module.STRUCTURES, split, seed=seed)
    return retrieval.judged(rows) if find_task(task).kind == "retrieval" else rows


@cache
def _reranked(task: str, split: str, seed: int) -> tuple[GoldRow, ...]:
    rows = generated_rows("micro-retrieval", split, seed=seed)
    return reranking.pairs(f"{task}-{split}", rows, find_split(find_task(task), split).n_rows)
