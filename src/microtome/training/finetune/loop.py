"""The fine-tuning loop, to be read top to bottom.

Whatever a step draws (rows, dropout, dropped layers) depends on its number and the seeds alone, so
a training that is resumed ends as one that was never interrupted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from microtome.errors import Diverged, RequestError, is_out_of_memory
from microtome.families import adapt
from microtome.families.seam import Family
from microtome.observe.products import FastProducts
from microtome.observe.texts import IntArray
from microtome.training.finetune.examples import Batches, Examples
from microtome.training.finetune.forward import logits_of
from microtome.training.finetune.freezing import check_layerdrop, dropped_layers, freeze_
from microtome.training.finetune.losses import backward_by_parts, pair_loss
from microtome.training.finetune.processes import Processes
from microtome.training.finetune.state import Epoch, Workplace, resumed
from microtome.training.optimisation import Optimizer, rate_factor
from microtome.training.recipe import Precision, Recipe, Seeds, derived

RAN_AWAY = 1e6
"""A loss so many times the first loss doesn't recover, even while it is still a number."""


@dataclass(frozen=True)
class Step:
    """What a progress callback sees: after every step, and once more after an epoch's scores."""

    step: int
    n_steps: int
    epoch: int
    loss: float
    scores: dict[str, float] = field(default_factory=dict)


Score = Callable[[PreTrainedModel], tuple[dict[str, float], float]]
"""Scores of a model by metric, and the one that decides which epoch is best."""
OnStep = Callable[[Step], None]


@dataclass(frozen=True)
class Outcome:
    """What a training gave, apart from the weights."""

    history: tuple[Epoch, ...]
    kept_epoch: int
    micro_batch_size: int
    frozen: tuple[str, ...]


def train(
    model: PreTrainedModel,
    examples: Examples,
    recipe: Recipe,
    *,
    seeds: Seeds,
    score: Score | None = None,
    workplace: Workplace | None = None,
    progress: OnStep | None = None,
    processes: Processes | None = None,
    dropout: bool = True,
) -> Outcome:
    """Fine-tune ``model`` in place, with the model's own dropout unless ``dropout`` is False.

    A ``workplace`` stores its state after each epoch and every few minutes, and is where a training
    that was killed resumes.
    """
    family, processes = adapt(model), processes or Processes()
    check_layerdrop(family, recipe.layerdrop)
    if examples.pairs is not None and processes.count > 1:
        raise RequestError(
            f"pairs of a batch are compared with each other, got {processes.count} processes",
            "train in one process",
        )
    frozen = freeze_(family, recipe.freeze)
    optimizer = Optimizer(
        {name: value for name, value in model.named_parameters() if value.requires_grad},
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        clip=recipe.clip,
    )
    batches = Batches.of(len(examples), recipe)
    course = resumed(model, optimizer, workplace, recipe)
    stepping = Stepping(family, examples, recipe, seeds, processes, course.micro_batch_size)
    keeper = workplace if processes.is_first else None
    for epoch in range(len(course.history), batches.epochs):
        model.train(dropout)
        losses = course.losses
        for step in batches.steps_of(epoch)[len(losses) :]:
            rows = batches.rows_of(step, seeds.data)
            with random_numbers(derived(seeds.dropout, step, processes.rank), model.device):
                loss = stepping.gradients(step, rows)
            loss = processes.sum_gradients(optimizer.parameters.values(), loss)
            losses.append(loss)
            course.micro_batch_size = stepping.micro_batch_size
            norm = optimizer.step(rate_factor(step, batches.n_steps, recipe.warmup))
            _check_finite(loss, norm, step, batches.n_steps, course.first_loss or losses[0], recipe)
            if progress:
                progress(Step(step + 1, batches.n_steps, epoch, loss))
            if keeper and keeper.is_due() and step + 1 < batches.last_step(epoch):
                keeper.write(course.saved(model, optimizer))
        model.eval()
        _check_weights(model, batches.last_step(epoch), batches.n_steps, recipe)
        scores, primary = score(model) if score else ({}, math.nan)
        done = Epoch(epoch, batches.last_step(epoch), float(np.mean(losses)), scores)
        course.add(done, primary, model, recipe)
        if keeper:
            keeper.write(course.saved(model, optimizer))
        if progress:
            progress(Step(batches.last_step(epoch), batches.n_steps, epoch, done.loss, scores))
    course.restore_best_(model)
    return Outcome(tuple(course.history), course.best_epoch, stepping.micro_batch_size, frozen)


@dataclass
class Stepping:
    """Gradients of one effective batch, in as many micro-batches as memory asks for."""

    family: Family
    examples: Examples
    recipe: Recipe
    seeds: Seeds
    processes: Processes
    micro_batch_size: int

    def gradients(self, step: int, rows: IntArray) -> float:
        """Add up the gradients of the mean loss over ``rows``; gives this process's share of it."""
        share = rows[self.processes.rank :: self.processes.count]
        dropped = dropped_layers(
            self.family.shape.n_layers, self.recipe.layerdrop, seed=self.seeds.dropout, step=step
        )
        while True:
            try:
                if self.examples.pairs is not None:
                    return self._compared(step, rows, dropped)
                return self._accumulated(share, self.examples.n_terms(rows), dropped)
            except (RuntimeError, MemoryError) as error:
                is_full = isinstance(error, torch.OutOfMemoryError) or is_out_of_memory(error)
                if not is_full or self.micro_batch_size == 1:
                    raise
            # Outside the except: its traceback would keep the tensors that didn't fit.
            self.family.model.zero_grad(set_to_none=True)
            self.micro_batch_size = math.ceil(min(self.micro_batch_size, len(share)) / 2)

    def _accumulated(self, share: IntArray, n_terms: int, dropped: frozenset[int]) -> float:
        device = self.family.model.device
        total = 0.0
        for start in range(0, len(share), self.micro_batch_size):
            micro = share[start : start + self.micro_batch_size]
            chunk, targets = self.examples.batch(micro, device)
            with computing(self.family, self.recipe.precision):
                outputs = self.examples.outputs(self.family, chunk, dropped)
                loss = self.examples.loss(outputs, targets, chunk) / n_terms
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        return total

    def _compared(self, step: int, rows: IntArray, dropped: frozenset[int]) -> float:
        """Gradients of a loss that compares all pairs of the batch, in micro-batches as well."""
        examples, embedder = self.examples, self.family.embedder
        device = self.family.model.device
        assert embedder is not None

        def embedded(part: IntArray) -> Tensor:
            """(2, n, D) in the order of ``part``, with the same dropout each time."""
            chunk = examples.pair_batch(part, device)
            drawn = derived(self.seeds.dropout, step, int(part[0]))
            with random_numbers(drawn, device), computing(self.family, self.recipe.precision):
                outputs = logits_of(self.family, chunk, dropped=dropped)
            by_text = torch.from_numpy(np.argsort(chunk.texts)).to(device)
            return outputs[by_text].view(2, len(part), -1)

        size, targets = self.micro_batch_size, examples.pair_targets(rows, device)
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        return backward_by_parts(
            embedded, parts, lambda e: pair_loss(embedder, examples.kind, e, targets)
        )


@contextmanager
def computing(family: Family, precision: Precision) -> Iterator[None]:
    """How a forward pass is computed, and with it the gradients of what it gives.

    bfloat16 where a GPU has it; a CPU computes in float32 unless the recipe says bfloat16, and
    gives gradients of the word embeddings as the rows that were looked up (:class:`RowGradients`).
    """
    device = family.model.device
    auto = device.type == "cuda" and torch.cuda.is_bf16_supported()
    arithmetic: AbstractContextManager[object] = FastProducts()
    if precision == "bfloat16" or (precision == "auto" and auto):
        arithmetic = torch.autocast(device.type, dtype=torch.bfloat16)
    words = family.body.get_input_embeddings()
    words.sparse = device.type == "cpu"
    try:
        with arithmetic:
            yield
    finally:
        words.sparse = False


@contextmanager
def random_numbers(seed: int, device: torch.device) -> Iterator[None]:
    """Dropout from ``seed``; the caller's random numbers stay as they are."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


def _check_finite(
    loss: float, norm: float, step: int, n_steps: int, first: float, recipe: Recipe
) -> None:
    if math.isfinite(loss) and math.isfinite(norm) and loss <= RAN_AWAY * (first + 1):
        return
    is_gradient = math.isfinite(loss) and not math.isfinite(norm)
    what, value = ("gradient", norm) if is_gradient else ("loss", loss)
    raise _diverged(f"at step {step + 1} of {n_steps}: the {what} is {value:.3g}", recipe)


def _check_weights(model: PreTrainedModel, step: int, n_steps: int, recipe: Recipe) -> None:
    for name, value in model.named_parameters():
        if not bool(torch.isfinite(value.sum())):  # a sum passes on what isn't finite
            raise _diverged(f"by step {step} of {n_steps}: {name} is no longer finite", recipe)


def _diverged(how: str, recipe: Recipe) -> Diverged:
    rate = f"(learning rate {recipe.learning_rate:g})"
    return Diverged(f"the training diverged {how} {rate}", "take a smaller learning rate")
