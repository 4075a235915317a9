"""The fine-tuning loop, to be read top to bottom.

Whatever a step draws (rows, dropout, dropped layers) depends on its number and the seeds alone, so
a training that is taken up again ends as one that was never interrupted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

import numpy as np
import torch
from transformers import PreTrainedModel

from microtome.errors import Diverged
from microtome.families import adapt
from microtome.families.seam import Family
from microtome.observe.texts import IntArray
from microtome.training.checkpoints import Workplace
from microtome.training.examples import Examples
from microtome.training.forward import logits_of
from microtome.training.freezing import check_layerdrop, dropped_layers, freeze_
from microtome.training.losses import summed_loss
from microtome.training.optimisation import Optimizer, rate_factor
from microtome.training.plan import Plan
from microtome.training.processes import Processes
from microtome.training.recipe import Precision, Recipe
from microtome.training.seeds import Seeds, derived
from microtome.training.state import Epoch, taken_up

RAN_AWAY = 1e6
"""A loss so many times the first one isn't coming back, even while it is still a number."""


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
Progress = Callable[[Step], None]


@dataclass(frozen=True)
class Training:
    """What a training gave, beside the weights."""

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
    progress: Progress | None = None,
    processes: Processes | None = None,
) -> Training:
    """Fine-tune ``model`` in place. A ``workplace`` stores each epoch, and is where it goes on."""
    family, processes = adapt(model), processes or Processes()
    check_layerdrop(family, recipe.layerdrop)
    frozen = freeze_(family, recipe.freeze)
    optimizer = Optimizer(model, recipe)
    plan = Plan.of(len(examples), recipe)
    state = taken_up(model, optimizer, workplace, recipe)
    stepping = Stepping(family, examples, recipe, seeds, processes, state.micro_batch_size)
    for epoch in range(len(state.history), plan.epochs):
        model.train()
        losses = []
        for step in plan.steps_of(epoch):
            rows = plan.rows_of(step, seeds.data)
            with random_numbers(derived(seeds.dropout, step, processes.rank), model.device):
                loss = stepping.gradients(step, rows)
            loss = processes.sum_gradients(optimizer.parameters.values(), loss)
            losses.append(loss)
            norm = optimizer.step(rate_factor(step, plan.n_steps, recipe.warmup))
            _check_finite(loss, norm, step, plan.n_steps, state.first_loss or losses[0], recipe)
            if progress:
                progress(Step(step + 1, plan.n_steps, epoch, loss))
        model.eval()
        _check_weights(model, plan.last_step(epoch), plan.n_steps, recipe)
        scores, primary = score(model) if score else ({}, math.nan)
        done = Epoch(epoch, plan.last_step(epoch), float(np.mean(losses)), scores)
        state.add(done, primary, losses[0], stepping.micro_batch_size, model, recipe)
        if workplace and processes.is_first:
            workplace.write(state.saved(model, optimizer))
        if progress:
            progress(Step(plan.last_step(epoch), plan.n_steps, epoch, done.loss, scores))
    state.restore_best_(model)
    return Training(tuple(state.history), state.best_epoch, stepping.micro_batch_size, frozen)


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
        own = rows[self.processes.rank :: self.processes.count]
        dropped = dropped_layers(
            self.family.shape.n_layers, self.recipe.layerdrop, seed=self.seeds.dropout, step=step
        )
        while True:
            try:
                return self._accumulated(own, len(rows), dropped)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error) or self.micro_batch_size == 1:
                    raise
            # Outside the except: its traceback would keep the tensors that didn't fit.
            self.family.model.zero_grad(set_to_none=True)
            self.micro_batch_size = math.ceil(min(self.micro_batch_size, len(own)) / 2)

    def _accumulated(self, own: IntArray, n_rows: int, dropped: frozenset[int]) -> float:
        device = self.family.model.device
        total = 0.0
        for start in range(0, len(own), self.micro_batch_size):
            micro = own[start : start + self.micro_batch_size]
            chunk, targets = self.examples.batch(micro, device)
            with autocast(device, self.recipe.precision):
                logits = logits_of(self.family, chunk, dropped=dropped)
                loss = summed_loss(self.examples.kind, logits, targets, chunk) / n_rows
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        return total


def is_out_of_memory(error: BaseException) -> bool:
    """GPUs have an error of their own for it; torch's CPU allocator only has words."""
    known = isinstance(error, torch.OutOfMemoryError | MemoryError)
    return known or "can't allocate memory" in str(error)


def autocast(device: torch.device, precision: Precision) -> AbstractContextManager[object]:
    """bfloat16 where a GPU has it; a CPU computes in float32 unless asked otherwise."""
    auto = device.type == "cuda" and torch.cuda.is_bf16_supported()
    if precision == "bfloat16" or (precision == "auto" and auto):
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


@contextmanager
def random_numbers(seed: int, device: torch.device) -> Iterator[None]:
    """Dropout from ``seed``; the caller's random numbers go on as if nothing was drawn."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


def _check_finite(
    loss: float, norm: float, step: int, n_steps: int, first: float, recipe: Recipe
) -> None:
    if math.isfinite(loss) and math.isfinite(norm) and loss <= RAN_AWAY * (first + 1):
        return
    what = "gradient" if math.isfinite(loss) and not math.isfinite(norm) else "loss"
    value = norm if what == "gradient" else loss
    raise Diverged(
        f"the training diverged at step {step + 1} of {n_steps}: the {what} is {value:.3g} "
        f"(learning rate {recipe.learning_rate:g})",
        "take a smaller learning rate",
    )


def _check_weights(model: PreTrainedModel, step: int, n_steps: int, recipe: Recipe) -> None:
    for name, value in model.named_parameters():
        if not bool(torch.isfinite(value).all()):
            raise Diverged(
                f"the training diverged by step {step} of {n_steps}: {name} is no longer finite "
                f"(learning rate {recipe.learning_rate:g})",
                "take a smaller learning rate",
            )
