"""Fine-tuning as a trial: one arm of a sweep, or the head that another experiment needs first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from microtome.errors import RequestError
from microtome.experiments.options import Option
from microtome.experiments.subject import CHECKPOINT, MODEL, Rows, Subject
from microtome.runs import Context, Result, Trial

if TYPE_CHECKING:
    from microtome.tasks import Dataset
    from microtome.training.recipe import Recipe

RECIPE = (
    Option("epochs", None, "of the fine-tuning; the task's unless given", "whole"),
    Option("batch_size", None, "of the fine-tuning; the task's unless given", "whole"),
    Option("learning_rate", None, "the model card's unless given, else the task's", "number"),
)
FRACTION = Option("fraction", 1.0, "training size: 1 all, below 1 a share, 2+ rows", "number")
OPTIONS = (FRACTION, *RECIPE)
SEEDS = Option("seeds", [0, 1, 2], "every arm is trained once per seed", "numbers")
FRACTIONS = Option(
    "fractions", [1.0], "training sizes: 1 all, below 1 a share, 2+ rows", "fractions"
)
MATCH_STEPS = Option("match_steps", False, "as many updates with few rows as with all", "flag")


@dataclass(frozen=True)
class Arm:
    """One fine-tuning of a sweep. ``about`` stands in each of its rows.

    ``edits`` come before the training. ``fraction`` is the settings' unless the arm has its own.
    ``keep`` keeps the checkpoint, for trials that need it; the logits on the measured rows are
    always kept. ``new_head`` draws the task's head afresh even where the model has one, so that all
    arms begin alike.
    """

    about: Mapping[str, Any] = field(default_factory=dict)
    edits: str = ""
    seed: int = 0
    fraction: float | None = None
    layerdrop: float = 0.0
    match_steps: bool = False
    steps: int | None = None  # updates, instead of those of the recipe's epochs
    keep: bool = False
    new_head: bool = False
    label: str = ""


def head_first(subject: Subject, settings: Mapping[str, Any]) -> tuple[Trial, ...]:
    """The fine-tuning that a subject without a task head needs; nothing for one that has it."""
    if subject.has_task_head:
        return ()
    label = f"fine-tune {subject.model} on {subject.task}"
    return (arm_trial(subject, "finetuning", settings, Arm(keep=True, label=label)),)


def arm_trial(subject: Subject, experiment: str, settings: Mapping[str, Any], arm: Arm) -> Trial:
    """The trial that trains and scores one arm; ``settings`` hold the recipe's options."""
    recipe = {option.name: settings[option.name] for option in RECIPE} | {"steps": arm.steps}
    fraction = checked_fraction(settings) if arm.fraction is None else arm.fraction
    said = {
        "about": dict(arm.about),
        "edits": arm.edits,
        "seed": arm.seed,
        "fraction": fraction,
        "layerdrop": arm.layerdrop,
        "match_steps": arm.match_steps,
        "keep": arm.keep,
        "new_head": arm.new_head,
        "recipe": {name: value for name, value in recipe.items() if value is not None},
    }
    label = arm.label or f"{arm.edits or 'unedited'}, seed {arm.seed}, {fraction:g} of the rows"
    return subject.trial("finetuning:measure", experiment, said, label=label, trains=True)


def checked_fraction(settings: Mapping[str, Any]) -> float:
    """``--fraction``: a share of the training rows, or how many."""
    fraction: float = settings[FRACTION.name]
    if fraction <= 0 or (fraction > 1 and fraction != int(fraction)):
        raise RequestError(f"--fraction {fraction:g} given, a share or a number of rows wanted")
    return fraction


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """Fine-tune on the training side of the subject's data, score and keep the logits."""
    from microtome.models import resolve
    from microtome.training.finetuning import finetune
    from microtome.training.recipe import recipe_for

    train, dev = training_rows(request, context)
    source = resolve(context.where[MODEL])
    recipe = recipe_for(train.task, source.path).but(
        **request["recipe"], layerdrop=request["layerdrop"] or None
    )
    if request["match_steps"]:
        as_many = steps_of(recipe, len(train))
        recipe = recipe.but(steps=max(as_many, recipe.steps or 0))
    done = finetune(
        source,
        train,
        dev,
        edits=request["edits"] or None,
        recipe=recipe,
        seed=request["seed"],
        fraction=request["fraction"],
        new_head=request["new_head"],
        watch=False,  # a trial keeps the last scores alone
        out=context.scratch / CHECKPOINT if request["keep"] else None,
        device=context.device,
        progress=lambda step: context.report(
            f"step {step.step} of {step.n_steps}, loss {step.loss:.3f}", step.scores
        ),
    )
    rows = [
        {
            **request["about"], "edit": request["edits"], "seed": request["seed"],
            "fraction": request["fraction"], "metric": name, "value": score.value,
            "low": score.low, "high": score.high, "n": score.n,
        }
        for name, score in done.scores.items()
    ]  # fmt: skip
    return Result(
        rows=rows,
        summary={done.primary: done.scores[done.primary].value},
        arrays={"logits": done.logits},
        checkpoint=request["keep"],
    )


def training_rows(request: Mapping[str, Any], context: Context) -> tuple[Dataset, Dataset]:
    """The training side of the subject's data, whole, and the rows that are measured."""
    rows = Rows.of(request, context)
    train, dev = rows.open_for_training()
    return train, dev.limit(rows.limit, seed=rows.seed)


def steps_of(recipe: Recipe, n_rows: int) -> int:
    """The updates that ``n_rows`` rows give."""
    return math.ceil(n_rows / recipe.batch_size) * recipe.epochs
