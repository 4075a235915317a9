"""Which rows are meant: one value, from the command line down to the trial that reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from microtome.errors import RequestError
from microtome.tasks.catalogue import find_task
from microtome.tasks.task import Kind, Task

SHORTEST = 8  # tokens that a text may be cut to, at least
PLACES = ("path", "dev_path", "candidates")


@dataclass(frozen=True)
class DataSpec:
    """Rows as a user names them; ``open_data`` and ``open_training`` read them.

    A task by name, with ``path`` the folder that holds its native files; or own data, with ``path``
    a file and columns that default to ``text``, ``pair`` and ``label``. ``limit`` caps the measured
    rows. ``held_out`` measures the dev side of a file's 80/20 split, because the other side is for
    training; with ``dev_path``, a second file, that one is measured and all of ``path`` is for
    training. ``max_length`` is in tokens per text, the task's unless given.
    ``label_column`` may be several, ``a,b,c``, of 0 and 1; ``label_separator`` divides the labels
    within one: both are multi-label. ``kind`` says what the file doesn't show. ``candidates`` is
    the first-stage run, in TREC's format, of a BEIR folder whose documents are reranked.
    ``pooling`` (cls or mean) makes an embedder of an encoder without a head, ``prompt`` names the
    one of an embedder's prompts that its texts get.
    ``skip_unknown_labels`` leaves rows out whose label isn't one of the task's, instead of refusing
    the file.

        DataSpec("mrpc", "glue/MRPC", limit=200)
        DataSpec(path="reviews.csv", text_column="review", label_column="stars")
    """

    task: str | Task | None = None
    path: Path | None = None
    split: str | None = None
    limit: int | None = None
    seed: int = 0
    text_column: str | None = None
    pair_column: str | None = None
    label_column: str | None = None
    label_separator: str | None = None
    labels: tuple[str, ...] | None = None
    kind: Kind | None = None
    revision: str | None = None
    held_out: bool = False
    dev_path: Path | None = None
    candidates: Path | None = None
    max_length: int | None = None
    skip_unknown_labels: bool = False
    pooling: str | None = None
    prompt: str | None = None

    def __post_init__(self) -> None:
        for name in PLACES:
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, Path(given).expanduser())
        if self.max_length is not None and self.max_length < SHORTEST:
            raise RequestError(f"max_length must be {SHORTEST} or more, got {self.max_length}")
        if self.labels is not None:
            object.__setattr__(self, "labels", tuple(self.labels))
        if self.kind not in (None, *get_args(Kind)):
            raise RequestError(
                f"no data is of kind {self.kind!r}", f"there are {', '.join(get_args(Kind))}"
            )

    @property
    def is_file(self) -> bool:
        """Whether the rows are one file: it is measured whole, or split for training."""
        return self.path is not None and self.path.is_file()

    @property
    def is_empty(self) -> bool:
        """Whether neither a task nor data is named."""
        return self.task is None and self.path is None

    @property
    def columns(self) -> tuple[str | None, str | None, str | None]:
        """The columns of text, pair and label that were asked for."""
        return self.text_column, self.pair_column, self.label_column

    def as_json(self) -> dict[str, Any]:
        """Everything but the places, which aren't part of a trial's identity."""
        return {k: v for k, v in vars(self).items() if k not in PLACES and v not in (None, False)}

    @classmethod
    def of_json(
        cls,
        stored: Mapping[str, Any],
        *,
        path: Path | None,
        dev_path: Path | None,
        candidates: Path | None = None,
    ) -> DataSpec:
        """What :meth:`as_json` stored, with the places where the data is now."""
        return cls(**stored, path=path, dev_path=dev_path, candidates=candidates)


def each_task(spec: DataSpec, text: str) -> list[DataSpec]:
    """``--tasks a,b`` as a spec per task; ``spec.path`` holds a folder of native files for each.

    One name alone, an unknown one and a name given twice are refused.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if len(names) < 2:
        raise RequestError(f"--tasks expects two tasks or more, got {text!r}", "for one: --task")
    if twice := [name for name in names if names.count(name) > 1]:
        raise RequestError(f"--tasks {text} names {twice[0]} twice")
    if any(given is not None for given in (spec.task, spec.dev_path, spec.labels, *spec.columns)):
        raise RequestError(
            "--tasks goes neither with --task nor with options of own data",
            "several tasks are named ones",
        )
    tasks = [find_task(name) for name in names]
    if spec.path is not None and all(task.has_rows for task in tasks):
        raise RequestError(
            f"--data {spec.path} has no use: {', '.join(names)} are embedded", "leave it out"
        )
    return [replace(spec, task=task.name, path=task_folder(spec.path, task)) for task in tasks]


def task_folder(root: Path | None, task: Task) -> Path | None:
    """``glue`` and ``sst2`` → ``glue/SST-2``; one whose rows come with a package needs none."""
    if root is None or task.has_rows:
        return None
    if not root.is_dir():
        raise RequestError(
            f"expected --data to be a folder with a folder for each task, got {root}"
        )
    folders = [
        entry
        for entry in sorted(root.iterdir())
        if entry.is_dir() and _letters(entry.name) == _letters(task.name)
    ]
    if not folders:
        raise RequestError(
            f"{root} has no folder for {task.name}",
            "the folders are called as the tasks, SST-2 or sst2",
        )
    return folders[0]


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
