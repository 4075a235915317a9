"""The course of a training between epochs: what is kept, stored, and taken up again."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from microtome.training.checkpoints import Saved, Workplace
from microtome.training.optimisation import Optimizer
from microtome.training.recipe import Recipe


@dataclass(frozen=True)
class Epoch:
    """One epoch: its mean loss, and the scores on dev after it."""

    epoch: int
    steps: int  # taken since the beginning
    loss: float
    scores: dict[str, float] = field(default_factory=dict)


@dataclass
class State:
    """The course so far, and the best weights where they are to be kept."""

    micro_batch_size: int
    history: list[Epoch] = field(default_factory=list)
    first_loss: float = 0.0
    best_epoch: int = 0
    best_score: float = -math.inf
    best: dict[str, Tensor] = field(default_factory=dict)

    def add(
        self,
        done: Epoch,
        primary: float,
        first_loss: float,
        micro_batch_size: int,
        model: PreTrainedModel,
        recipe: Recipe,
    ) -> None:
        """An epoch is done; a later one must be better to be best."""
        self.history.append(done)
        self.first_loss = self.first_loss or first_loss
        self.micro_batch_size = micro_batch_size
        if recipe.keep == "last":
            self.best_epoch = done.epoch
        elif primary > self.best_score:
            self.best_epoch, self.best_score = done.epoch, primary
            self.best = {n: p.detach().clone() for n, p in model.named_parameters()}

    def saved(self, model: PreTrainedModel, optimizer: Optimizer) -> Saved:
        """As it goes to disk."""
        progress: dict[str, Any] = {
            "history": [asdict(epoch) for epoch in self.history],
            "micro_batch_size": self.micro_batch_size,
            "first_loss": self.first_loss,
            "best_epoch": self.best_epoch,
            "best_score": self.best_score if math.isfinite(self.best_score) else None,
            "threads": torch.get_num_threads(),
        }
        return Saved(dict(model.named_parameters()), optimizer.state(), self.best, progress)

    @torch.no_grad()
    def restore_best_(self, model: PreTrainedModel) -> None:
        """Put the best epoch's weights back, where they were to be kept."""
        for name, parameter in model.named_parameters():
            if name in self.best:
                parameter.copy_(self.best[name])


@torch.no_grad()
def taken_up(
    model: PreTrainedModel, optimizer: Optimizer, workplace: Workplace | None, recipe: Recipe
) -> State:
    """The state after the last stored epoch, with model and optimiser set to it; else a new one."""
    saved = workplace.read() if workplace else None
    if saved is None:
        return State(recipe.micro_batch_size or recipe.batch_size)
    for name, parameter in model.named_parameters():
        parameter.copy_(saved.weights[name])
    optimizer.load(saved.optimizer)
    progress = saved.progress
    best_score = progress["best_score"]
    return State(
        micro_batch_size=progress["micro_batch_size"],
        history=[Epoch(**epoch) for epoch in progress["history"]],
        first_loss=progress["first_loss"],
        best_epoch=progress["best_epoch"],
        best_score=-math.inf if best_score is None else best_score,
        best=saved.best,
    )
