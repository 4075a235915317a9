"""A masked LM with its optimiser: steps, log, checkpoints, and the way back to them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from microtome import files
from microtome.errors import Diverged, RunError
from microtome.families import adapt
from microtome.observe.products import FastProducts
from microtome.training.checkpoints import SavedState, read_state, write_state
from microtome.training.mlm.building import new_model, start_model, trained_parameters
from microtome.training.mlm.forward import heldout_scores, masked_loss
from microtome.training.mlm.head_start import calm_, head_start_
from microtome.training.mlm.preparation import Prepared
from microtome.training.mlm.request import LogLine, PretrainRequest, Schedule
from microtome.training.mlm.rows import Batch, RowOrder, make_batch
from microtome.training.optimisation import Optimizer, rate_factor

PAIRS = 0.25  # rows that are split in two segments, so that segment 1 is trained, too
WARM_UP = 0.1  # of the steps
WEIGHT_DECAY = 0.01
CLIP = 1.0
BETAS = (0.9, 0.98)


class MaskedTraining:
    """A model with its optimiser at some step of a schedule."""

    def __init__(self, request: PretrainRequest, prepared: Prepared, schedule: Schedule) -> None:
        self.request, self.prepared, self.schedule = request, prepared, schedule
        self.folder = request.work / "checkpoint"
        self.log = request.work / "log.jsonl"
        self.done, self.tokens, self.seconds = 0, 0, 0.0
        self.losses: list[float] = []  # since the last line of the log
        self.adopt(self.fresh_model())

    def fresh_model(self) -> PreTrainedModel:
        """The model to begin with: the start, or fresh weights."""
        request = self.request
        if request.start is not None:
            return start_model(request.start)
        return new_model(
            request.family,
            layers=request.layers,
            width=request.width,
            heads=request.n_heads,
            embedding=request.embedding_width,
            vocabulary=self.prepared.tokens.n_vocabulary,
            positions=request.positions,
            seed=request.seed,
        )

    def adopt(self, model: PreTrainedModel) -> None:
        """Train ``model`` from now on, with a fresh optimiser."""
        self.model, self.family = model, adapt(model)
        self.optimizer = Optimizer(
            trained_parameters(model),
            learning_rate=self.request.peak_rate,
            weight_decay=WEIGHT_DECAY,
            clip=CLIP,
            betas=BETAS,
        )

    def resume(self) -> None:
        """Take up the last checkpoint, if there is one; the log loses what came after it."""
        saved = read_state(self.folder)
        if saved is not None:
            self._restore(saved)
        elif self.request.start is None:
            self.begin()
        kept = [line for line in self.logged() if line["step"] <= self.done]
        with files.storing(self.log):
            files.write_text(self.log, "".join(f"{json.dumps(line)}\n" for line in kept))

    def begin(self) -> None:
        """Write the head start into the fresh model."""
        stream, tokens = self.prepared.training, self.prepared.tokens
        head_start_(self.model, stream, tokens=tokens, seed=self.request.seed)
        calm_(self.model)

    def _restore(self, saved: SavedState) -> None:
        progress = saved.progress
        self.done, self.tokens = progress["step"], progress["tokens"]
        self.seconds, self.losses = progress["seconds"], list(progress["losses"])
        self.adopt(self.fresh_model())
        parameters = trained_parameters(self.model)
        if parameters.keys() != saved.weights.keys():
            raise RunError(f"the checkpoint in {self.folder} is of another model")
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(saved.weights[name])
        self.optimizer.load(saved.optimizer)

    def logged(self) -> list[dict[str, Any]]:
        """The log's lines; a kill may have torn the last one, which is as if it weren't there."""
        if not self.log.exists():
            return []
        text = self.log.read_text(encoding="utf-8", errors="replace")
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def train(self, progress: Callable[[LogLine], None]) -> None:
        """All steps that are left, with log lines and checkpoints between them."""
        begin = saved = time.monotonic()
        already = self.seconds
        while self.done < self.schedule.n_steps:
            stage = self.schedule.stage(self.done)
            self.losses.append(self.step_once(self.done))
            self.done += 1
            self.tokens += stage.n_rows * stage.length
            self.seconds = already + time.monotonic() - begin
            last = self.done == self.schedule.n_steps
            if last or self.done % self.request.log_steps == 0:
                progress(self._write_log())
            if last or time.monotonic() - saved >= self.request.checkpoint_seconds:
                self.save()
                saved = time.monotonic()

    def step_once(self, step: int) -> float:
        """One update; returns the loss."""
        loss = self.loss(step)
        loss.backward()  # type: ignore[no-untyped-call]
        value = float(loss.detach())
        if not np.isfinite(value):
            raise Diverged(f"the loss became {value} at step {step}", "lower the learning rate")
        self.optimizer.step(self.rate(step))
        return value

    def rate(self, step: int) -> float:
        """The share of the peak learning rate at a step."""
        return rate_factor(step, self.schedule.n_steps, WARM_UP)

    def loss(self, step: int) -> Tensor:
        """What a step makes smaller: the masked tokens' cross-entropy."""
        with FastProducts():
            return masked_loss(self.family, self.batch(step))

    def batch(self, step: int) -> Batch:
        """The masked rows of a step; a function of the step and the seed."""
        stage, tokens, seed = self.schedule.stage(step), self.prepared.tokens, self.request.seed
        return make_batch(
            RowOrder(self.prepared.training, stage.length, stage.n_rows, seed).rows(step, tokens),
            rate=stage.masked,
            pairs=PAIRS,
            tokens=tokens,
            random=np.random.default_rng([seed, 2, step]),
            n_positions=self.request.positions,
        )

    def save(self) -> None:
        """Write a checkpoint."""
        progress = {
            "step": self.done,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "losses": self.losses,
        }
        weights = trained_parameters(self.model)
        state = SavedState(weights, self.optimizer.state(), progress)
        write_state(self.folder, f"step-{self.done:07d}", state)

    def _write_log(self) -> LogLine:
        rows = self.prepared.heldout_rows(length=self.request.length, n=self.request.n_heldout_rows)
        scores = heldout_scores(
            self.model, rows, tokens=self.prepared.tokens, common=self.prepared.common
        )
        line = LogLine(
            step=self.done,
            n_steps=self.schedule.n_steps,
            tokens=self.tokens,
            seconds=round(self.seconds, 1),
            loss=round(float(np.mean(self.losses)), 4),
            heldout={name: round(value, 4) for name, value in asdict(scores).items()},
        )
        self.losses = []
        with files.storing(self.log), self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(line)) + "\n")
        return line
