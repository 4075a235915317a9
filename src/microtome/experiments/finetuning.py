"""Fine-tuning as a trial: experiments that need a task head make one first, and say so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microtome.experiments.experiment import Option
from microtome.experiments.subject import CHECKPOINT, DATA, MODEL, Rows, Subject
from microtome.runs import Context, Result, Trial

OPTIONS = (
    Option("epochs", None, "of the fine-tuning, where one is needed; the task's unless given"),
    Option("batch_size", None, "the same"),
    Option("learning_rate", None, "the same; the model card's comes first"),
)


def head_first(subject: Subject, settings: Mapping[str, Any]) -> tuple[Trial, ...]:
    """The fine-tuning that a subject without a task head needs; nothing for one that has it."""
    if subject.has_task_head:
        return ()
    recipe = {option.name: settings[option.name] for option in OPTIONS}
    request = {"recipe": {k: v for k, v in recipe.items() if v is not None}, "seed": 0}
    return (
        subject.trial(
            "finetuning:measure",
            "finetuning",
            request,
            label=f"fine-tune {subject.model} on {subject.task}",
        ),
    )


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """Fine-tune on the training side of the subject's data and keep the checkpoint."""
    from microtome.models import resolve
    from microtome.tasks import open_training
    from microtome.training.finetuning import finetune
    from microtome.training.recipe import recipe_for

    path = context.where.get(DATA)
    place = None if path is None else Path(path)
    said = Rows(**dict(request["rows"]) | {"held_out": False}, path=place)
    train, dev = open_training(said.request)
    dev = dev.limit(said.limit, seed=said.seed)
    source = resolve(context.where[MODEL])
    recipe = recipe_for(train.task, source.path).but(**request["recipe"])
    done = finetune(
        source,
        train,
        dev,
        recipe=recipe,
        seed=request["seed"],
        out=context.scratch / CHECKPOINT,
        device=context.device,
        progress=lambda step: context.report(
            f"step {step.step} of {step.n_steps}, loss {step.loss:.3f}", step.scores
        ),
    )
    rows = [
        {
            "seed": request["seed"], "metric": name, "value": score.value,
            "low": score.low, "high": score.high, "n": score.n,
        }
        for name, score in done.scores.items()
    ]  # fmt: skip
    primary = done.scores[done.primary]
    return Result(rows=rows, summary={done.primary: primary.value}, checkpoint=True)
