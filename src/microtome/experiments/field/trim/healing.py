"""The cuts of one size learn to answer as their base does: contenders first, then the best."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from microtome import files
from microtome.edits import parse
from microtome.errors import Diverged
from microtome.experiments.field.trim.budget import rounds
from microtome.families import adapt
from microtome.models import save
from microtome.runs import Context
from microtome.surgery import apply, certify_weights
from microtome.surgery.proof import rounded
from microtome.training.distil.lessons import LABEL_SHARE, Lessons
from microtome.training.finetune.loop import train
from microtome.training.finetune.state import Workplace
from microtome.training.recipe import Recipe, Seeds, derived

HEALED = "healed"  # the stage, and the folder within the trial's checkpoint
RECORD = "healing.json"
SAVE_MINUTES = 1.0
TIMED_STEPS, UNTIMED_STEPS = 6, 2


@dataclass(frozen=True, eq=False)
class Healed:
    """The best cut of a size after its training; no model where every training diverged."""

    edit: str
    steps: int
    contenders: int
    model: PreTrainedModel | None
    problem: str = ""


@dataclass(frozen=True, eq=False)
class Healing:
    """One size: how its cuts are trained, and how the better one is found."""

    base: PreTrainedModel
    lessons: Lessons
    request: Mapping[str, Any]
    context: Context
    pick_score: Callable[[PreTrainedModel], float]

    def run(self, ranked: Sequence[str], n_steps: int) -> Healed:
        """Heal the best of the ``ranked`` edits, and save it."""
        n_contenders, first, then = rounds(n_steps, len(ranked))
        tried: dict[str, tuple[float, PreTrainedModel]] = {}
        problem = ""
        for edit in ranked[:n_contenders]:
            try:
                cut = apply(parse(edit), self.base)
                if first:
                    self._train(cut, edit, first, "first")
                    self._check_answers(cut)
                tried[edit] = (self.pick_score(cut) if n_contenders > 1 else 0.0, cut)
            except Diverged as error:
                problem = error.message
        for edit in sorted(tried, key=lambda edit: -tried[edit][0]):
            healed = tried[edit][1]
            try:
                self._train(healed, edit, then, "then")
                healed = rounded(healed)
                self._check_answers(healed)
            except Diverged as error:
                problem = error.message
                continue
            self._save(edit, healed, first + then)
            self._clear()
            return Healed(edit, first + then, n_contenders, healed)
        self._clear()
        return Healed(ranked[0], 0, n_contenders, None, problem)

    def _train(self, cut: PreTrainedModel, edit: str, n_steps: int, stage: str) -> None:
        """Train ``cut`` in place; a training that was killed resumes from its last minute."""
        recipe = self._recipe.but(steps=n_steps)
        asked = {"edit": edit, "stage": stage, **recipe.as_json(), "seed": self.request["seed"]}
        name = "".join(letter if letter.isalnum() else "-" for letter in f"{stage}-{edit}")
        workplace = Workplace(self.context.scratch / name, asked, minutes=SAVE_MINUTES)
        workplace.prepare()
        train(
            cut, self.lessons, recipe, seeds=Seeds.of(derived(self.request["seed"], stage)),
            workplace=workplace, dropout=False,
            progress=lambda step: self.context.report(
                f"{edit}: step {step.step} of {step.n_steps}, loss {step.loss:.3f}"
            ),
        )  # fmt: skip

    def _check_answers(self, cut: PreTrainedModel) -> None:
        """Refuse a cut that a last step broke: its loss was still a number, and so is a weight."""
        rows = np.arange(min(self.request["batch_size"], len(self.lessons)))
        chunk, _ = self.lessons.batch(rows, cut.device)
        with torch.inference_mode():
            outputs = self.lessons.outputs(adapt(cut), chunk, frozenset())
        if not bool(torch.isfinite(outputs).all()):
            raise Diverged(
                "the training diverged by its last step: the answers aren't numbers",
                "take a smaller learning rate",
            )

    @property
    def _recipe(self) -> Recipe:
        asked = self.request
        return Recipe(
            batch_size=asked["batch_size"], learning_rate=asked["learning_rate"], epochs=1
        )

    def _save(self, edit: str, healed: PreTrainedModel, n_steps: int) -> None:
        """The folder with the record of its training; its cut gets the cheap certificate."""
        cut = apply(parse(edit), self.base)
        certificate = certify_weights(parse(edit), self.base, cut).require()
        record = {
            "schema_version": 1, "edit": edit, "answer": self.lessons.answer,
            "texts": len(self.lessons), "seed": self.request["seed"],
            "label_share": LABEL_SHARE if self.lessons.has_labels else 0.0,
            "trial": self.context.hash, **self._recipe.as_json(), "steps": n_steps,
        }  # fmt: skip

        def add_record(folder: Path) -> Mapping[str, object]:
            files.write_json(folder / RECORD, record)
            return certificate.as_json()

        folder = self.context.scratch / HEALED
        files.remove(folder)  # of a trial that was killed right after this
        save(healed, folder, prove=add_record)

    def _clear(self) -> None:
        """What was kept to resume isn't part of the checkpoint."""
        for folder in self.context.scratch.glob("*.finetuning"):
            files.remove(folder)


def seconds_per_step(cut: PreTrainedModel, lessons: Lessons, batch: int) -> float:
    """The median of a few steps after the first ones, which warm up."""
    ends: list[float] = []
    n_steps = UNTIMED_STEPS + TIMED_STEPS
    recipe = Recipe(batch_size=batch, steps=n_steps, epochs=1, learning_rate=1e-6)
    train(
        cut, lessons, recipe, seeds=Seeds.of(0), dropout=False,
        progress=lambda step: ends.append(time.perf_counter()),
    )  # fmt: skip
    # The last call tells of the epoch's end, not of a step.
    return float(np.median(np.diff(ends[UNTIMED_STEPS - 1 : n_steps])))
