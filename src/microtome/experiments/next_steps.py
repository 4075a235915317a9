"""From a page to a checkpoint: what was trained here, where it is, and what to type next."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microtome.experiments.field.trim.choice import base_of, has_learnt
from microtome.experiments.field.trim.plan import TRIM
from microtome.experiments.kao.layer_removal.report import cut_to_make
from microtome.experiments.kit.arms import MAX_LENGTH, OPTIONS
from microtome.experiments.kit.seed_curves import size_name
from microtome.experiments.kit.subject import CHECKPOINT
from microtome.runs import RunResult
from microtome.tasks.scoring.masked_tokens import MASKED_ACCURACY
from microtome.views import Step, TidyRows

TRIMMED, SMALLER, TUNED = "my-trimmed-model", "my-smaller-model", "my-smaller-model-tuned"
DATA_OPTIONS = (
    "text_column", "pair_column", "label_column", "label_separator", "pooling", "prompt",
    "max_length",
)  # fmt: skip


def next_steps(result: RunResult, rows: Mapping[str, TidyRows]) -> tuple[Step, ...]:
    """The steps after a run; ``rows`` are those of each experiment by name.

    They name the checkpoint that was measured, the command of a longer trim, the cut to make by
    hand, and the training that would heal it.
    """
    trained = _trained_here(result)
    steps = [] if trained is None else [_trained_step(result, *trained)]
    model = shlex.quote(result.request["model"] if trained is None else str(trained[1]))
    start = None if trained is None else result.folder
    where = "where this run was started" if trained is None else "in this run's folder"
    trimmed = rows.get(TRIM, ())
    is_open = result.request.get("kind") != TRIM and trimmed and has_learnt(trimmed)
    if is_open:  # a `microtome trim` saved its cut
        data = _data_options(result, base_of(trimmed)["metric"], start)
        trim = f"microtome trim {model} {data} --out {TRIMMED}"
        steps.append(Step(f"Cut it, heal it for longer, and save what is best ({where}):", trim))
    cut = cut_to_make(rows.get("layer-removal", ()))
    if cut is not None:
        by_hand = "Or cut it by hand" if is_open else "Cut it"
        operate = f"microtome operate {model} {shlex.quote(cut['edit'])} --out {SMALLER}"
        steps.append(Step(f"{by_hand} to {cut['layers']} layers, proven ({where}):", operate))
        if cut["metric"] != MASKED_ACCURACY:  # plain text has no labels to fine-tune on
            data = _data_options(result, cut["metric"], start)
            recipe = _recipe_options(result.request["experiments"]["layer-removal"])
            finetune = f"microtome finetune {SMALLER} {data}{recipe} --out {TUNED}"
            steps.append(
                Step("Train it there, so that the layers left learn the task again:", finetune)
            )
    return tuple(steps)


def _trained_here(result: RunResult) -> tuple[str, Path] | None:
    """The trial that fine-tuned the model, if this run did, and the checkpoint that it left.

    A sweep has several trainings, and its rows are about none of them in particular.
    """
    trained = [record for record in result.records.values() if record.name == "finetuning.train"]
    if len(trained) != 1 or not trained[0].ok:
        return None
    if not trained[0].checkpoint:
        return None
    return trained[0].hash, Path("checkpoints", trained[0].hash, CHECKPOINT)


def _trained_step(result: RunResult, trial: str, folder: Path) -> Step:
    request = result.records[trial].request
    share = request["fraction"]
    rows = "the training rows" if share == 1 else size_name(share)
    return Step(
        f"{result.request['model']} had no head for this task, so it was fine-tuned here on {rows}"
        f" (seed {request['seed']}). Everything above is about that checkpoint, which is"
        " in this run's folder:",
        str(folder),
    )


def _data_options(result: RunResult, metric: str, start: Path | None) -> str:
    """The options that name the run's data, as far as its request holds them.

    ``start`` is the folder where they are to be typed, None where the run was started. Pairs with a
    number train an embedder by their similarity only where that is asked for.
    """
    data = result.request["rows"]
    task, learnt = data.get("task"), result.places("training_data")
    places = {
        "data": (learnt if task else []) or result.places("data"),
        "dev_data": result.places("dev_data"),
    }
    given = {name: _seen_from(start, found[0]) for name, found in places.items() if found}
    if not task and "data" not in given:
        given["data"] = "FILE"
    kind = "similarity" if metric.startswith("cosine_") else data.get("kind")
    named = {name: data[name] for name in DATA_OPTIONS if data.get(name)}
    labels = {"labels": ",".join(data["labels"])} if data.get("labels") else {}
    options = {"task": task, **given, **named, **labels, "kind": kind}
    skips = " --skip-unknown-labels" if data.get("skip_unknown_labels") else ""
    return " ".join(_option(name, value) for name, value in options.items() if value) + skips


def _recipe_options(settings: Mapping[str, Any]) -> str:
    """The options of the training that were asked for; the rows know their length already."""
    return "".join(
        f" {_option(option.name, f'{settings[option.name]:g}')}"
        for option in OPTIONS
        if option != MAX_LENGTH and settings.get(option.name, option.default) != option.default
    )


def _option(name: str, value: object) -> str:
    return f"--{name.replace('_', '-')} {shlex.quote(str(value))}"


def _seen_from(start: Path | None, place: str) -> str:
    """A relative path as it is typed in another folder, as long as it can be found from here."""
    if start is None or Path(place).is_absolute() or not Path(place).exists():
        return place
    return os.path.relpath(Path(place).resolve(), start.resolve())
