"""Trials around a fine-tuning: the training itself, and its scores as rows of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microtome.edits import Unshare
from microtome.experiments.kit.subject import CHECKPOINT, MODEL, POOLING
from microtome.experiments.kit.trial_inputs import training_rows
from microtome.models.source import resolve
from microtome.runs import Context, Result
from microtome.tasks import Dataset, Evaluation
from microtome.tasks.scoring.constant import answer_columns
from microtome.training.finetune import finetune
from microtome.training.recipe import Recipe


def train(request: Mapping[str, Any], context: Context) -> Result:
    """Fine-tune on the training side of the subject's data, score, and store the logits.

    The model as it is leaves its checkpoint too, because other experiments look at it; an edited
    one doesn't: a sweep has dozens.
    """
    train, dev = training_rows(request, context)
    unedited = request["edits"] in ("", Unshare().text)
    done = finetune(
        resolve(context.where[MODEL]),
        train,
        dev,
        edits=request["edits"] or None,
        recipe=Recipe(**request["recipe"]),
        seed=request["seed"],
        fraction=request["fraction"],
        new_head=request["new_head"],
        pooling=context.where.get(POOLING),
        watch=False,  # a trial keeps the last scores alone
        out=context.scratch / CHECKPOINT if unedited else None,
        device=context.device,
        progress=lambda step: context.report(
            f"step {step.step} of {step.n_steps}, loss {step.loss:.3f}", step.scores
        ),
    )
    about = {"edit": request["edits"], "seed": request["seed"], "fraction": request["fraction"]}
    return Result(
        rows=score_rows(about, dev, done.evaluation),
        summary={done.primary: done.scores[done.primary].value},
        arrays={"logits": done.logits},
        checkpoint=unedited,
    )


def score_rows(
    about: Mapping[str, Any], dataset: Dataset, evaluation: Evaluation
) -> list[dict[str, Any]]:
    """One row per metric, with its interval and the constant answer's; ``about`` is in each."""
    return [
        {
            **about, "metric": name, "value": score.value, "low": score.low, "high": score.high,
            "n": score.n, **answer_columns(dataset, evaluation, name),
        }
        for name, score in evaluation.scores.items()
    ]  # fmt: skip


def repeat_rows(request: Mapping[str, Any], context: Context) -> Result:
    """The scores of the needed fine-tuning, with the columns of the experiment that asked for it.

    Equal fine-tunings are one trial, whatever the experiments say of it in their rows.
    """
    (trained,) = context.needs.values()
    return Result(rows=[{**request["about"], **row} for row in trained.rows])
