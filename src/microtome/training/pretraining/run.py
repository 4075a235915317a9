"""The run itself: plan, steps, growth, log, checkpoints, and at the end the model."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import PreTrainedModel

from microtome.errors import RequestError, RunError
from microtome.families import adapt
from microtome.training.pretrain import PretrainResult, Progress
from microtome.training.pretraining import checkpoint
from microtome.training.pretraining.building import layer_matrices, new_model, trained_parameters
from microtome.training.pretraining.continuing import shaped_as_start, start_model
from microtome.training.pretraining.evaluation import decoding_curve, heldout_scores
from microtome.training.pretraining.forward import masked_loss
from microtome.training.pretraining.growth import grown, grown_state
from microtome.training.pretraining.loss import Candidates, draw_candidates
from microtome.training.pretraining.optimizer import Optimizer, Rates
from microtome.training.pretraining.preparation import Prepared, prepare
from microtome.training.pretraining.rows import Array, Batch, RowOrder, ask_first, make_batch
from microtome.training.pretraining.schedule import Plan, Stage, make_plan, outline, plan_of
from microtome.training.pretraining.warmstart import warm_start_

if TYPE_CHECKING:
    from microtome.training.pretrain import PretrainRequest

PAIRS = 0.25  # rows that are split in two segments, so that segment 1 is trained, too
CURVE_ROWS = 64
EXTRA = 0.125  # rows from the extra text, in the stages at full depth
CONTINUED = 0.25  # of a depth's rates: what a model has learnt must not be shaken out of it
DECODED_EVERY = 10  # log lines


def carry_out(request: PretrainRequest, progress: Callable[[Progress], None]) -> PretrainResult:
    """Prepare, train to the plan's end, finish."""
    from microtome.training.pretraining.finishing import finish

    if request.out.exists() and any(request.out.iterdir()):
        raise RequestError(f"{request.out} isn't empty", "name a new folder with --out")
    if request.threads:
        torch.set_num_threads(request.threads)
    request = shaped_as_start(request)
    prepared = prepare(request)
    check_settings(request)
    plan = stored_plan(request, prepared)
    training = Training(request, prepared, plan)
    training.resume()
    training.train(progress)
    return finish(request, prepared, plan, training)


def check_settings(request: PretrainRequest) -> None:
    """Refuse to go on with other settings than a run was begun with."""
    file = request.work / "settings.json"
    if not file.exists():
        if (request.work / "plan.json").exists():
            raise RequestError(
                f"{request.work} was begun by an older version, and doesn't say with what settings",
                "use another --out",
            )
        checkpoint.write_json(file, request.settings)
        return
    begun = json.loads(file.read_text(encoding="utf-8"))
    changed = [
        f"{name} {begun.get(name)} (now {value})"
        for name, value in request.settings.items()
        if begun.get(name) != value
    ]
    if changed:
        raise RequestError(
            f"{request.work} was begun with {', '.join(changed)}",
            "use another --out, or the same settings",
        )


def stored_plan(request: PretrainRequest, prepared: Prepared) -> Plan:
    """The plan of an earlier call, or a new one: from `stages`, or from `hours` by measuring."""
    file = request.work / "plan.json"
    if file.exists():
        return Plan.from_json(json.loads(file.read_text(encoding="utf-8")))
    plan = plan_of(request.stages) if request.stages else calibrated_plan(request, prepared)
    checkpoint.write_json(file, plan.as_json())
    return plan


def calibrated_plan(request: PretrainRequest, prepared: Prepared) -> Plan:
    """Time a few steps of every stage on this machine, and fill the hours with them."""
    outlined = outline(
        request.layers,
        grow=request.grow,
        length=request.length,
        n_rows=request.n_rows,
        long=request.positions,
        extra=EXTRA if request.extra_text else 0.0,
        candidates=request.vocabulary // 4,
    )
    if request.start is not None:
        outlined = [
            (replace(stage, rate=CONTINUED * stage.rate), share) for stage, share in outlined
        ]
    per_step = [seconds_per_step(request, prepared, stage) for stage, _ in outlined]
    return make_plan(outlined, seconds=request.hours * 3600, per_step=per_step)


def seconds_per_step(request: PretrainRequest, prepared: Prepared, stage: Stage) -> float:
    """The middle of five steps of a stage, after one to warm up, on a model that is thrown away."""
    timed = replace(stage, steps=6)
    training = Training(request, prepared, plan_of([timed]))
    times = []
    for step in range(6):
        begin = time.perf_counter()
        training.step_once(step)
        times.append(time.perf_counter() - begin)
    return float(np.median(times[1:]))


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
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
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
        kept = [line for line in lines if json.loads(line)["step"] <= self.done]
        self.log.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")

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
        loss = masked_loss(self.family, self.batch(step), self._candidates(step, stage))
        loss.backward()  # type: ignore[no-untyped-call]
        value = float(loss.detach())
        if not np.isfinite(value):
            raise RunError(f"the loss became {value} at step {step}", "lower the learning rates")
        self.optimizer.step(self.plan.factor(step))
        return value

    def _candidates(self, step: int, stage: Stage) -> Candidates | None:
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
        value: dict[str, Any] = asdict(line)
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(value) + "\n")
        return line
