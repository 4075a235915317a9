"""From a page to a checkpoint: what was trained here, where it is, and what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from microtome.experiments.kao.layer_removal.report import cut_to_make
from microtome.experiments.kit.seed_curves import size_name
from microtome.experiments.kit.subject import CHECKPOINT
from microtome.runs import RunResult
from microtome.tasks.scoring.masked_tokens import MASKED_ACCURACY
from microtome.views import Step, TidyRows

SMALLER, TUNED = "my-smaller-model", "my-smaller-model-tuned"


def next_steps(result: RunResult, rows: Mapping[str, TidyRows]) -> tuple[Step, ...]:
    """The steps after a run; ``rows`` are those of each experiment by name.

    Which checkpoint the rows speak of, the cut worth making, and the training that would heal it.
    """
    trained = _trained_here(result)
    steps = [] if trained is None else [_trained_step(result, *trained)]
    cut = cut_to_make(rows.get("layer-removal", ()))
    if cut is not None:
        model = shlex.quote(result.request["model"] if trained is None else str(trained[1]))
        operate = f"microtome operate {model} {shlex.quote(cut['edit'])} --out {SMALLER}"
        where = "from anywhere" if trained is None else "in this run's folder"
        steps.append(
            Step(f"Make the model with {cut['layers']} layers, proven ({where}):", operate)
        )
        if cut["metric"] != MASKED_ACCURACY:  # plain text has no labels to fine-tune on
            data = _data_options(result, cut["metric"])
            finetune = f"microtome finetune {SMALLER} {data} --out {TUNED}"
            steps.append(Step("Train it, so that the layers left learn the task again:", finetune))
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
    rows = size_name(request["fraction"])
    return Step(
        f"{result.request['model']} had no head for this task, so it was fine-tuned here on {rows}"
        f" (seed {request['seed']}). Everything above is about that checkpoint, which is"
        " in this run's folder:",
        str(folder),
    )


def _data_options(result: RunResult, metric: str) -> str:
    """The options that name the run's data, as far as its request holds them.

    Pairs with a number train an embedder by their similarity only where that is asked for.
    """
    data = result.request["rows"]
    kind = "similarity" if metric.startswith("cosine_") else data.get("kind")
    further = f" --kind {kind}" if kind else ""
    further += " --skip-unknown-labels" if data.get("skip_unknown_labels") else ""
    if data.get("task"):
        places = result.places("training_data") or result.places("data")
        where = f" --data {shlex.quote(places[0])}" if places else ""
        return f"--task {shlex.quote(data['task'])}{where}{further}"
    places = result.places("data")
    columns = "".join(
        f" --{name.replace('_', '-')} {shlex.quote(data[name])}"
        for name in ("text_column", "pair_column", "label_column", "label_separator")
        if data.get(name)
    )
    return f"--data {shlex.quote(places[0]) if places else 'FILE'}{columns}{further}"
