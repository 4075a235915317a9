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
from microtome.observe.packing import Chunk, packed
from microtome.observe.texts import IntArray, Texts, fitted, select_texts
from microtome.tasks import Dataset, Windows
from microtome.tasks.encoding.tagged import TaggedTexts
from microtome.tasks.encoding.texts import EMBEDDED_KINDS, Encoded
from microtome.tasks.scoring.labels import tag_map
from microtome.tasks.task import Kind, Task
from microtome.training.finetune.forward import logits_of
from microtome.training.finetune.losses import UNLABELLED, summed_loss
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
    """n rows to train on; a row of spans or tokens is one window of a question or sentence.

    ``pairs`` are the two texts of each row where texts are embedded one by one.
    """

    kind: Kind
    texts: Texts
    targets: Tensor
    """Label indices, numbers, 0 or 1 for relevance (n,); first and last token of an answer (n, 2);
    labels (n, labels); tokens: outputs by token (T,); retrieval: codes of relevant pairs."""
    pairs: IntArray | None = None  # (n, 2)

    def __len__(self) -> int:
        return len(self.texts) if self.pairs is None else len(self.pairs)

    def batch(self, rows: IntArray, device: torch.device | str = "cpu") -> tuple[Chunk, Tensor]:
        """These rows as one packed chunk, and their targets in the chunk's order."""
        chosen, tokens = select_texts(self.texts, rows)
        chunk = next(packed(chosen, tokens_in_flight=len(chosen.ids), device=device))
        order = tokens[chunk.tokens] if self.kind == "tokens" else rows[chunk.texts]
        return chunk, self.targets[torch.from_numpy(order)].to(device)

    def outputs(self, family: Family, chunk: Chunk, dropped: frozenset[int]) -> Tensor:
        """What ``family`` answers, for ``loss`` to look at."""
        return logits_of(family, chunk, dropped=dropped)

    def loss(self, outputs: Tensor, targets: Tensor, chunk: Chunk) -> Tensor:
        """Summed over rows; the caller divides by ``n_terms`` of the whole batch."""
        return summed_loss(self.kind, outputs, targets, chunk)

    def pair_batch(self, rows: IntArray, device: torch.device | str = "cpu") -> Chunk:
        """The first texts of these pairs, then the second ones, as one packed chunk."""
        assert self.pairs is not None
        chosen, _ = select_texts(self.texts, self.pairs[rows].T.ravel())
        return next(packed(chosen, tokens_in_flight=len(chosen.ids), device=device))

    def pair_targets(self, rows: IntArray, device: torch.device | str = "cpu") -> Tensor:
        """The gold numbers of these pairs (n,); or what each query is compared with (n, n).

        With its own document, and those that aren't relevant to it: another relevant one is no
        negative.
        """
        assert self.pairs is not None
        if self.kind != "retrieval":
            return self.targets[torch.from_numpy(rows)].to(device)
        queries, documents = self.pairs[rows].T
        codes = queries[:, None] * len(self.texts) + documents[None, :]
        relevant = np.isin(codes, self.targets.numpy())
        return torch.from_numpy(~relevant | np.eye(len(rows), dtype=bool)).to(device)

    def n_terms(self, rows: IntArray) -> int:
        """How many terms the loss of these rows is the mean of, as plain transformers counts."""
        if self.kind == "tokens":
            _, tokens = select_texts(self.texts, rows)
            labelled = self.targets[torch.from_numpy(tokens)] != UNLABELLED
            return max(1, int(labelled.sum()))
        return len(rows) * (self.targets.shape[1] if self.kind == "multilabel" else 1)


def examples_of(dataset: Dataset, encoded: Encoded, family: Family) -> Examples:
    """Encoded rows with their labels, as the outputs of ``family``'s head."""
    kind = dataset.task.kind
    texts = fitted(encoded, family.n_positions)
    targets: Any
    if kind in EMBEDDED_KINDS:
        return _pairs(dataset, texts)
    if isinstance(encoded, Windows):
        targets = np.stack([encoded.starts, encoded.ends], 1).astype(np.int64)
    elif isinstance(encoded, TaggedTexts):
        by_token = encoded.by_token(_outputs_of_tags(dataset, family))
        targets = by_token[texts.source_of(np.arange(len(texts.ids)))]
    elif kind == "reranking":
        targets = (dataset.targets > 0).astype(np.int64)
    else:
        as_numbers = kind in ("regression", "multilabel")
        targets = dataset.targets.astype(np.float32 if as_numbers else np.int64)
    return Examples(kind, texts, torch.from_numpy(targets))


def _pairs(dataset: Dataset, texts: Texts) -> Examples:
    """Two texts with a number; or a query and a document that is relevant to it."""
    targets: Any
    if dataset.corpus is None:
        pairs = np.arange(len(texts)).reshape(-1, 2)
        targets = dataset.targets.astype(np.float32)
    else:
        relevant = dataset.corpus.grades > 0
        queries, documents = dataset.corpus.queries[relevant], dataset.corpus.documents[relevant]
        pairs = np.stack([queries, len(dataset) + documents], 1)
        targets = np.sort(pairs[:, 0] * len(texts) + pairs[:, 1])
    if len(pairs) < 2:
        raise DataError(
            f"{dataset.task.name} {dataset.split} has {len(pairs)} pair to train on, expected 2 or"
            " more: pairs of a batch are compared with each other"
        )
    return Examples(dataset.task.kind, texts, torch.from_numpy(targets), pairs)


def _outputs_of_tags(dataset: Dataset, family: Family) -> IntArray:
    """The output of the head that stands for each word's tag."""
    task, config = dataset.task, family.model.config
    assert dataset.tags is not None
    spoken, _ = tag_map(task, config.id2label, config.num_labels)
    used = np.unique(dataset.tags.values)
    if unknown := [task.labels[tag] for tag in used if task.labels[tag] not in spoken]:
        raise RequestError(
            f"{task.name} has the tags {', '.join(unknown)}, and the model's head has"
            f" {', '.join(spoken)}",
            "ask for a new head: --new-head",
        )
    outputs = np.full(len(task.labels), UNLABELLED, dtype=np.int64)
    outputs[used] = [spoken.index(task.labels[tag]) for tag in used]
    return outputs[dataset.tags.values]


def check_trainable(train: Dataset, dev: Dataset) -> None:
    """Refuse rows that nothing can be trained on or scored against."""
    for dataset in (train, dev):
        if not dataset.labelled:
            raise DataError(
                f"{dataset.task.name} {dataset.split} has no labels to train on",
                "name a label column, or another task",
            )
        if not len(dataset):
            raise DataError(f"{dataset.task.name} {dataset.split} has no rows")
    if train.prompt is not None and train.task.kind not in EMBEDDED_KINDS:
        raise RequestError(
            f"a prompt is for an embedder, and {train.task.name} ({train.task.kind}) trains a head",
            "leave it out",
        )
    if (train.task.kind, train.labels) != (dev.task.kind, dev.labels):
        raise RequestError(
            f"training and dev rows must be of one task, got {train.task.name} and {dev.task.name}",
        )


def check_recipe(task: Task, recipe: Recipe) -> None:
    """Refuse a recipe by which an embedder can't learn."""
    if task.kind not in EMBEDDED_KINDS:
        return
    if recipe.batch_size < 2:
        raise RequestError(
            f"batch_size must be 2 or more for {task.name} ({task.kind}), whose pairs are compared"
            f" with the others of their batch, got {recipe.batch_size}"
        )
    if recipe.freeze == "encoder":
        raise RequestError(
            "freeze must leave something to train, and an embedder is all encoder",
            "freeze embeddings or a number of layers",
        )
