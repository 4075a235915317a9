"""A fine-tuning between two steps: what is kept, stored, and resumed.

``OUT.finetuning``, next to the output folder ``OUT``, holds the request and the last stored state,
after an epoch or a few minutes within one, and is removed when ``OUT`` is complete.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from microtome import files
from microtome.requests import check_same
from microtome.training.checkpoints import SavedState, read_state, write_state
from microtome.training.optimisation import Optimizer
from microtome.training.recipe import Recipe

REQUEST = "request.json"
KIND = "a fine-tuning"


class Workplace:
    """The folder of one fine-tuning under way; the folder of another request is refused.

    A state is due ``minutes`` after the one before, besides those after every epoch.
    """

    def __init__(self, out: Path, request: Mapping[str, object], *, minutes: float = 5.0) -> None:
        self.folder = out.with_name(f"{out.name}.finetuning")
        self.request = json.loads(json.dumps(request))
        self._minutes = minutes
        self._written = time.monotonic()
        stored = files.read_json(self.folder / REQUEST)
        if stored is not None:
            check_same(self.folder, stored, self.request, what=KIND)

    def prepare(self) -> None:
        """Make the folder, with the request in it."""
        with files.storing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            files.write_json(self.folder / REQUEST, self.request)

    def is_due(self) -> bool:
        """Whether the last state is old enough for another within an epoch."""
        return time.monotonic() - self._written >= 60 * self._minutes

    def write(self, state: SavedState) -> None:
        """Store a state, then remove the one before."""
        n_epochs, n_steps = (len(state.progress[key]) for key in ("history", "losses"))
        within = f"-step-{n_steps:07d}" if n_steps else ""
        write_state(self.folder, f"epoch-{n_epochs:04d}{within}", state)
        self._written = time.monotonic()

    def read(self) -> SavedState | None:
        """The last whole state; None where there is none yet."""
        return read_state(self.folder)

    def remove(self) -> None:
        """The work is done."""
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True)
class Epoch:
    """One epoch: its mean loss, and the scores on dev after it."""

    epoch: int
    steps: int  # taken since the beginning
    loss: float
    scores: dict[str, float] = field(default_factory=dict)


@dataclass
class Course:
    """The epochs so far, and the best weights where they are to be kept.

    ``losses`` are those of the steps of the epoch that is under way.
    """

    micro_batch_size: int
    history: list[Epoch] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    first_loss: float = 0.0
    best_epoch: int = 0
    best_score: float = -math.inf
    best: Mapping[str, Tensor] = field(default_factory=dict)

    def add(self, done: Epoch, primary: float, model: PreTrainedModel, recipe: Recipe) -> None:
        """An epoch is done; a later one must be better to be best."""
        self.history.append(done)
        self.first_loss = self.first_loss or self.losses[0]
        self.losses = []
        if recipe.keep == "last":
            self.best_epoch = done.epoch
        elif primary > self.best_score:
            self.best_epoch, self.best_score = done.epoch, primary
            self.best = {n: p.detach().clone() for n, p in model.named_parameters()}

    def saved(self, model: PreTrainedModel, optimizer: Optimizer) -> SavedState:
        """As it is stored."""
        progress: dict[str, Any] = {
            "history": [asdict(epoch) for epoch in self.history],
            "losses": self.losses,
            "micro_batch_size": self.micro_batch_size,
            "first_loss": self.first_loss,
            "best_epoch": self.best_epoch,
            "best_score": self.best_score if math.isfinite(self.best_score) else None,
            "threads": torch.get_num_threads(),
        }
        return SavedState(dict(model.named_parameters()), optimizer.state(), progress, self.best)

    @torch.no_grad()
    def restore_best_(self, model: PreTrainedModel) -> None:
        """Put the best epoch's weights back, where they were to be kept."""
        for name, parameter in model.named_parameters():
            if name in self.best:
                parameter.copy_(self.best[name])


@torch.no_grad()
def resumed(
    model: PreTrainedModel, optimizer: Optimizer, workplace: Workplace | None, recipe: Recipe
) -> Course:
    """The course up to the last stored state, model and optimiser set to it; else a new one."""
    saved = workplace.read() if workplace else None
    if saved is None:
        return Course(recipe.micro_batch_size or recipe.batch_size)
    for name, parameter in model.named_parameters():
        parameter.copy_(saved.weights[name])
    optimizer.load(saved.optimizer)
    progress = saved.progress
    best_score = progress["best_score"]
    return Course(
        micro_batch_size=progress["micro_batch_size"],
        history=[Epoch(**epoch) for epoch in progress["history"]],
        losses=progress.get("losses", []),  # version 0.1 stored whole epochs alone
        first_loss=progress["first_loss"],
        best_epoch=progress["best_epoch"],
        best_score=-math.inf if best_score is None else best_score,
        best=saved.best,
    )
