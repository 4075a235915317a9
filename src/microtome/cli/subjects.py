"""``--model a,b`` and ``--model-for TASK=CHECKPOINT``: which model goes with which task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from microtome.errors import RequestError
from microtome.tasks.data_spec import DataSpec

Asked = tuple[str | None, DataSpec]  # None: the experiment finds its model, or says that it can't


def models_and_rows(
    model: str | None, for_tasks: Sequence[str], specs: Sequence[DataSpec]
) -> list[Asked]:
    """Every model with the rows of every task, model by model.

    ``for_tasks`` are texts "mrpc=./my-mrpc": the checkpoint of that task, in the place of the
    model; of several models, one for each, "mrpc=./a-mrpc,./b-mrpc".
    """
    models: Sequence[str | None] = (None,) if model is None else _listed(model)
    checkpoints = dict(_checkpoints(text) for text in for_tasks)
    if len(checkpoints) < len(for_tasks):
        raise RequestError("--model-for names a task twice", "of several models: TASK=A,B")
    tasks = [str(spec.task) for spec in specs if spec.task is not None]
    for task, given in checkpoints.items():
        if task not in tasks:
            known = ", ".join(tasks) or "own data, which has --model"
            raise RequestError(f"--model-for {task}: the tasks of this run are {known}")
        if len(given) != len(models):
            raise RequestError(
                f"--model-for {task} expects {len(models)} checkpoint{'s' * (len(models) > 1)},"
                f" one for each model, got {len(given)}"
            )
    return [
        (_chosen(checkpoints, spec, i) or name, spec)
        for i, name in enumerate(models)
        for spec in specs
    ]


def _chosen(checkpoints: Mapping[str, Sequence[str]], spec: DataSpec, i: int) -> str | None:
    given = checkpoints.get(str(spec.task))
    return None if given is None else given[i]


def _listed(text: str) -> list[str]:
    """``a,b,c``; a folder with a comma in its name is one model."""
    if Path(text).expanduser().exists():
        return [text]
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise RequestError(f"--model expects names with a comma between them, got {text!r}")
    return names


def _checkpoints(text: str) -> tuple[str, list[str]]:
    task, equals, checkpoint = text.partition("=")
    if not (task.strip() and equals and checkpoint.strip()):
        raise RequestError(f"--model-for expects TASK=CHECKPOINT, got {text!r}")
    return task.strip(), _listed(checkpoint)
