"""A model with its optimiser: steps, growth, log, checkpoints, and the way back to them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from microtome.errors import RunError
from microtome.families import adapt
from microtome.training.pretrain import Progress
from microtome.training.pretraining import checkpoint
from microtome.training.pretraining.building import layer_matrices, new_model, trained_parameters
from microtome.training.pretraining.continuing import start_model
from microtome.training.pretraining.evaluation import decoding_curve, heldout_scores
from microtome.training.pretraining.forward import masked_loss
from microtome.training.pretraining.growth import grown, grown_state
from microtome.training.pretraining.loss import Candidates, draw_candidates
from microtome.training.pretraining.optimizer import Optimizer, Rates
from microtome.training.pretraining.preparation import Prepared
from microtome.training.pretraining.rows import Array, Batch, RowOrder, ask_first, make_batch
from microtome.training.pretraining.schedule import Plan, Stage
from microtome.training.pretraining.warmstart import warm_start_
from microtome.training.storage import storing, write_text

if TYPE_CHECKING:
    from microtome.training.pretrain import PretrainRequest

PAIRS = 0.25  # rows that are split in two segments, so that segment 1 is trained, too
CURVE_ROWS = 64
DECODED_EVERY = 10  # log lines


class Training:
    """A model with its optimiser at some step of a plan."""

    def __init__(self, request: PretrainRequest, prepared: Prepared, plan: Plan) -> None:
        self.request, self.prepared, self.plan = request, prepared, plan
        self.folder = request.work / "checkpoint"
        self.log = request.work / "log.jsonl"
        self.done, self.tokens, self.seconds = 0, 0, 0.0
        self.losses: list[float] = []  # since the last line of the log
        self._take(self._fresh(plan.stages[0].layers))

    def begin(self) -> None:
        """Write the head start into the fresh model, unless it is declined."""
        if self.request.warm_start:
            stream, tokens = self.prepared.training, self.prepared.tokens
            warm_start_(self.model, stream, tokens=tokens, seed=self.request.seed)

    def _fresh(self, layers: int) -> PreTrainedModel:
        request = self.request
        if request.start is not None:
            return start_model(request.start)
        return new_model(
            request.family,
            layers=layers,
            width=request.width,
            heads=request.n_heads,
            embedding=request.embedding_width,
            vocabulary=self.prepared.tokens.n_vocabulary,
            positions=request.positions,
            seed=request.seed,
        )

    def _take(self, model: PreTrainedModel) -> None:
        request = self.request
        rates = Rates(
            matrices=request.matrix_rate,
            others=request.other_rate,
            matrix_decay=request.matrix_decay,
        )
        self.model, self.family = model, adapt(model)
        self.optimizer = Optimizer(trained_parameters(model), layer_matrices(model), rates)

    def resume(self) -> None:
        """Go on from the checkpoint, or begin; the log loses what came after the checkpoint."""
        found = checkpoint.read(self.folder)
        if found is None:
            self.begin()
        if found is not None:
            weights, state, at = found
            self._take(self._fresh(at["layers"]))
            parameters = trained_parameters(self.model)
            if parameters.keys() != weights.keys():
                raise RunError(f"the checkpoint in {self.folder} is of another model")
            with torch.no_grad():
                for name, parameter in parameters.items():
                    parameter.copy_(weights[name])
            self.optimizer.load(state)
            self.done, self.tokens, self.seconds = at["step"], at["tokens"], at["seconds"]
            self.losses = list(at.get("losses", []))
        kept = [line for line in self.logged() if line["step"] <= self.done]
        with storing(self.request.work, kept=checkpoint.KEPT):
            write_text(self.log, "".join(f"{json.dumps(line)}\n" for line in kept))

    def logged(self) -> list[dict[str, Any]]:
        """The log's lines; a kill may have torn the last one, which is as if it weren't there."""
        if not self.log.exists():
            return []
        text = self.log.read_text(encoding="utf-8", errors="replace")
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def train(self, progress: Callable[[Progress], None]) -> None:
        """All steps that are left, with log lines and checkpoints between them."""
        begin = saved = time.monotonic()
        already = self.seconds
        while self.done < self.plan.n_steps:
            self.losses.append(self.step_once(self.done))
            stage = self.plan.stages[self.plan.at(self.done)[0]]
            self.done += 1
            self.tokens += stage.n_rows * stage.length
            self.seconds = already + time.monotonic() - begin
            last = self.done == self.plan.n_steps
            if last or self.done % self.request.log_steps == 0:
                progress(self._write_log())
            if last or time.monotonic() - saved >= self.request.checkpoint_seconds:
                self.save()
                saved = time.monotonic()

    def step_once(self, step: int) -> float:
        """Grow if a stage begins, then one update; returns the loss."""
        stage = self.plan.stages[self.plan.at(step)[0]]
        if stage.layers != self.family.shape.n_layers:
            self._grow(stage.layers)
        loss = self.loss(step)
        loss.backward()  # type: ignore[no-untyped-call]
        value = float(loss.detach())
        if not np.isfinite(value):
            raise RunError(f"the loss became {value} at step {step}", "lower the learning rates")
        self.optimizer.step(self.plan.factor(step))
        return value

    def loss(self, step: int) -> Tensor:
        """What a step makes smaller: the masked tokens' cross-entropy."""
        return masked_loss(self.family, self.batch(step), self._candidates(step))

    def _candidates(self, step: int) -> Candidates | None:
        stage = self.plan.stages[self.plan.at(step)[0]]
        ids = self.prepared.by_frequency
        if not 0 < stage.candidates < len(ids):
            return None
        random = np.random.default_rng([self.request.seed, 3, step])
        return draw_candidates(ids, stage.candidates, random)

    def batch(self, step: int) -> Batch:
        """The masked rows of a step; a function of the step and the seed."""
        stage = self.plan.stages[self.plan.at(step)[0]]
        tokens, place = self.prepared.tokens, self.plan.row_step(step)
        rows = np.concatenate([order.rows(place, tokens) for order in self._rows(stage)])
        batch = make_batch(
            rows,
            rate=stage.masked,
            pairs=PAIRS,
            tokens=tokens,
            random=np.random.default_rng([self.request.seed, 2, step]),
            n_positions=self.request.positions,
        )
        if not self.request.summary_words:
            return batch
        return ask_first(
            batch,
            rows,
            n=self.request.summary_words,
            weights=self._rarity,
            tokens=tokens,
            random=np.random.default_rng([self.request.seed, 4, step]),
        )

    @cached_property
    def _rarity(self) -> Array:
        """The square root of each token's rank by frequency: words that say more come first."""
        ids = self.prepared.by_frequency
        ranks = np.empty(len(ids))
        ranks[ids] = np.arange(1, len(ids) + 1)
        return np.sqrt(ranks)

    def _rows(self, stage: Stage) -> list[RowOrder]:
        prepared, seed = self.prepared, self.request.seed
        if prepared.extra is None:
            return [RowOrder(prepared.training, stage.length, stage.n_rows, seed)]
        n_extra = round(stage.extra * stage.n_rows)
        shares = [(prepared.training, stage.n_rows - n_extra), (prepared.extra, n_extra)]
        return [RowOrder(stream, stage.length, n, seed) for stream, n in shares if n]

    def _grow(self, layers: int) -> None:
        before, state = self.model, self.optimizer.state()
        self._take(grown(before, layers))
        self.optimizer.load(grown_state(state, before, self.model))

    def save(self) -> None:
        """Write a checkpoint."""
        at = {
            "step": self.done,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "layers": self.family.shape.n_layers,
            "losses": self.losses,
        }
        weights = {name: p.detach() for name, p in trained_parameters(self.model).items()}
        checkpoint.write(
            self.folder, weights=weights, optimizer=self.optimizer.state(), progress=at
        )

    def _write_log(self) -> Progress:
        rows = self.prepared.heldout_rows(length=self.request.length, n=self.request.n_heldout_rows)
        tokens = self.prepared.tokens
        scores = heldout_scores(self.model, rows, tokens=tokens, common=self.prepared.common)
        n_line = self.done // self.request.log_steps
        curve = (
            decoding_curve(self.model, rows[:CURVE_ROWS], tokens=tokens)
            if n_line % DECODED_EVERY == 0 or self.done == self.plan.n_steps
            else ()
        )
        line = Progress(
            step=self.done,
            n_steps=self.plan.n_steps,
            layers=self.family.shape.n_layers,
            tokens=self.tokens,
            seconds=round(self.seconds, 1),
            loss=round(float(np.mean(self.losses)), 4),
            heldout={name: round(value, 4) for name, value in asdict(scores).items()},
            curve=tuple(round(value, 4) for value in curve),
        )
        self.losses = []
        with (
            storing(self.request.work, kept=checkpoint.KEPT),
            self.log.open("a", encoding="utf-8") as file,
        ):
            file.write(json.dumps(asdict(line)) + "\n")
        return line
