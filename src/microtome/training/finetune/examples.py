"""Labelled rows as the training loop takes them, and which of them are in each step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from microtome.errors import DataError, RequestError
from microtome.families.seam import Family
from microtome.observe.evaluation import HEAD_OF_KIND
from microtome.observe.packing import Chunk, packed
from microtome.observe.texts import IntArray, Texts, fitted
from microtome.tasks import Dataset, Windows
from microtome.tasks.encoding.texts import Encoded
from microtome.tasks.task import Kind
from microtome.training.recipe import Recipe


@dataclass(frozen=True)
class Batches:
    """The batches of a whole training, in their order."""

    n_rows: int
    batch_size: int
    n_steps: int
    epochs: int

    @classmethod
    def of(cls, n_rows: int, recipe: Recipe) -> Batches:
        """``epochs`` passes over the rows, or the number of steps that the recipe fixes."""
        n_steps = recipe.steps or recipe.epochs * math.ceil(n_rows / recipe.batch_size)
        return cls(n_rows, recipe.batch_size, n_steps, min(recipe.epochs, n_steps))

    def last_step(self, epoch: int) -> int:
        """How many steps are done when ``epoch`` is."""
        return (epoch + 1) * self.n_steps // self.epochs

    def steps_of(self, epoch: int) -> range:
        """The steps of one epoch."""
        return range(self.last_step(epoch - 1), self.last_step(epoch))

    def rows_of(self, step: int, seed: int) -> IntArray:
        """The rows of a step: each pass over the data has an order of its own."""
        per_pass = math.ceil(self.n_rows / self.batch_size)
        number, place = divmod(step, per_pass)
        order = _order(self.n_rows, seed, number)
        return order[place * self.batch_size : (place + 1) * self.batch_size]


@lru_cache(maxsize=2)
def _order(n_rows: int, seed: int, number: int) -> IntArray:
    return np.random.default_rng([seed, number]).permutation(n_rows)


@dataclass(frozen=True, eq=False)
class Examples:
    """n rows to train on; a row of a span task is one window of a question."""

    kind: Kind
    texts: Texts
    targets: Tensor  # (n,) label indices or numbers; (n, 2) first and last token of the answer

    def __len__(self) -> int:
        return len(self.texts)

    def batch(self, rows: IntArray, device: torch.device | str = "cpu") -> tuple[Chunk, Tensor]:
        """These rows as one packed chunk, and their targets in the chunk's order."""
        chosen = select_texts(self.texts, rows)
        chunk = next(packed(chosen, tokens_in_flight=len(chosen.ids), device=device))
        targets = self.targets[torch.from_numpy(rows[chunk.texts])]
        return chunk, targets.to(device)


def select_texts(texts: Texts, rows: IntArray) -> Texts:
    """Some of the texts, in the order of ``rows``."""
    lengths = texts.lengths[rows]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = np.arange(offsets[-1]) + np.repeat(texts.offsets[rows] - offsets[:-1], lengths)
    return Texts(
        ids=texts.ids[tokens],
        offsets=offsets,
        segments=None if texts.segments is None else texts.segments[tokens],
        special=texts.special[tokens],
    )


def examples_of(dataset: Dataset, encoded: Encoded, family: Family) -> Examples:
    """Encoded rows with their labels."""
    kind = dataset.task.kind
    targets: Any
    if isinstance(encoded, Windows):
        targets = np.stack([encoded.starts, encoded.ends], 1).astype(np.int64)
    else:
        targets = dataset.targets.astype(np.float32 if kind == "regression" else np.int64)
    return Examples(kind, fitted(encoded, family.n_positions), torch.from_numpy(targets))


def check_trainable(train: Dataset, dev: Dataset) -> None:
    """Refuse rows that no head can be trained on or scored against."""
    for dataset in (train, dev):
        if dataset.task.kind not in HEAD_OF_KIND:
            raise DataError(
                f"{dataset.task.name} has rows without labels, and training needs labels",
                "name a label column, or another task",
            )
        if not dataset.labelled:
            raise DataError(f"{dataset.task.name} {dataset.split} has no labels to train on")
        if not len(dataset):
            raise DataError(f"{dataset.task.name} {dataset.split} has no rows")
    if (train.task.kind, train.labels) != (dev.task.kind, dev.labels):
        raise RequestError(
            f"training and dev rows must be of one task, got {train.task.name} and {dev.task.name}",
        )
