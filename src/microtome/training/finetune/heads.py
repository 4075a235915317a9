"""The model with a head for a task: its own where that fits, a fresh one where it has none."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from microtome.errors import RequestError
from microtome.models import Source, load
from microtome.models.checkpoint import Checkpoint, look_at
from microtome.models.heads import HeadName, job_of, own_head, stored_labels
from microtome.observe.evaluation import HEAD_OF_KIND
from microtome.tasks.scoring.labels import plain_label
from microtome.tasks.task import Task


def load_for_task(
    source: Source,
    task: Task,
    *,
    seed: int,
    new_head: bool = False,
    device: str | torch.device = "cpu",
) -> PreTrainedModel:
    """Load ``source`` for ``task``. A head made for something else is refused, not thrown away.

    ``new_head`` replaces any head; a fresh one is drawn from ``seed`` alone.
    """
    assert source.path is not None
    checkpoint = look_at(source.path, links_into=source.links_into)
    wanted = HEAD_OF_KIND[task.kind]
    own = own_head(checkpoint)
    if new_head or own in ("mlm", "none"):
        labels = labels_of(task)
        model = load(source, head=wanted, id2label=labels, head_seed=seed, device=device)
    else:
        _check_fit(source.name, checkpoint, own, task)
        model = load(source, device=device)
    if task.kind == "classification":  # a head that fits may have unnamed outputs
        model.config.id2label = dict(enumerate(task.labels))
        model.config.label2id = {label: index for index, label in enumerate(task.labels)}
    if task.kind == "regression":
        model.config.problem_type = "regression"
    return model


def labels_of(task: Task) -> dict[int, str] | None:
    """The head's outputs by name; None for a head without labels."""
    if task.kind == "classification":
        return dict(enumerate(task.labels))
    return {0: task.name} if task.kind == "regression" else None


def _check_fit(name: str, checkpoint: Checkpoint, own: HeadName, task: Task) -> None:
    wanted = HEAD_OF_KIND[task.kind]
    hint = "name the task it was trained for, or ask for a new head (new_head=True)"
    if own != wanted:
        raise RequestError(
            f"{name} has a {own} head, and {task.name} ({task.kind}) needs one for {wanted}", hint
        )
    if own == "question-answering":
        return
    if job_of(checkpoint) == "multilabel":
        raise RequestError(
            f"{name} gives several labels per text, and {task.name} has one label per text", hint
        )
    found = stored_labels(checkpoint.config)
    expected = labels_of(task) or {}
    if len(found) != len(expected):
        raise RequestError(
            f"{name} has a head with {len(found)} outputs ({', '.join(found)}), and {task.name} "
            f"({task.kind}) needs {len(expected)}",
            hint,
        )
    generic = all(label == f"LABEL_{index}" for index, label in enumerate(found))
    same = list(map(plain_label, found)) == list(map(plain_label, expected.values()))
    if task.kind == "classification" and not generic and not same:
        raise RequestError(
            f"{name} has a head for the labels {', '.join(found)}, and {task.name} has "
            f"{', '.join(expected.values())}",
            hint,
        )
