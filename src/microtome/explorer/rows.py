"""The rows that a page scores on, and how their labels read."""

from __future__ import annotations

import math
from dataclasses import replace

from transformers import PreTrainedModel

from microtome.errors import DataError, RequestError
from microtome.models.heads import Job
from microtome.observe.evaluation import check_fit, head_name
from microtome.tasks import Dataset, DataSpec, label_map, open_data
from microtome.tasks.dataset import as_kind, kind_for
from microtome.tasks.task import METRICS_OF, Answer, Judgement, Label, Task

N_ROWS = 200  # so that a score takes a second or two
DEFAULT_TASKS: dict[Job, str] = {"embedding": "micro-similarity", "mlm": "micro-sentiment"}
"""Embedded tasks that need no head of their own: what is scored where no rows are named."""


def rows_for(
    model: PreTrainedModel, asked: DataSpec, job: Job, *, is_asked: bool
) -> tuple[Dataset | None, str]:
    """The rows to score on, at most 200 unless said; or None and why there are none.

    Where none are named an embedder compares pairs, and a masked LM restores words, of an embedded
    task. Rows that the model can't answer are refused if ``is_asked``: a run's model may have got
    its head by a fine-tuning that isn't on the table.
    """
    spec = replace(asked, limit=asked.limit or N_ROWS)
    if asked.is_empty:
        if job not in DEFAULT_TASKS:
            return None, "no rows were named"
        opened = open_data(replace(spec, task=DEFAULT_TASKS[job]))
        return (_as_texts(opened) if job == "mlm" else as_kind(opened, "similarity")), ""
    try:
        opened = open_data(spec)
        dataset = as_kind(opened, kind_for(opened.task.kind, head_name(model)))
        check_fit(model, dataset)
        if not dataset.labelled and dataset.task.kind != "text":
            raise DataError(f"{dataset.task.name} has no labels to score on")
    except RequestError as error:
        if is_asked:
            raise
        return None, error.message
    return dataset, ""


def _as_texts(dataset: Dataset) -> Dataset:
    """The texts of a task alone, as a masked LM is scored on them."""
    texts = replace(dataset.task, kind="text", metrics=METRICS_OF["text"], labels=())
    return replace(dataset, task=texts)


def labels_of(model: PreTrainedModel, dataset: Dataset | None) -> list[str]:
    """The names of the head's outputs: the task's, where the checkpoint has only numbers."""
    config = model.config
    if head_name(model) not in ("classification", "token-classification"):
        return []
    names = [str(config.id2label.get(i, i)) for i in range(config.num_labels)]
    if names == [f"LABEL_{i}" for i in range(len(names))]:  # transformers' names for any outputs
        if dataset is not None and dataset.task.kind == "reranking":
            return ["not relevant", "relevant"][-len(names) :]
        if len(names) == 1:
            return ["score"]
    if dataset is None or dataset.task.kind not in ("classification", "multilabel"):
        return names
    order, _ = label_map(dataset.task, config.id2label, config.num_labels)
    for label, output in zip(dataset.task.labels, order, strict=True):
        names[output] = label
    return names


def label_text(task: Task, label: Label) -> str | None:
    """A row's label in words; None where it has none."""
    if task.kind == "text" or label is None or (isinstance(label, float) and math.isnan(label)):
        return None
    if isinstance(label, frozenset):
        return ", ".join(task.labels[index] for index in sorted(label))
    if isinstance(label, tuple):
        parts = [_part_text(task, part) for part in label[:50]]
        if task.kind == "spans":
            return " / ".join(dict.fromkeys(parts)) or "no answer"
        return " ".join(parts)
    if isinstance(label, int) and task.labels and 0 <= label < len(task.labels):
        return task.labels[label]
    return f"{label:g}" if isinstance(label, int | float) else str(label)


def _part_text(task: Task, part: int | Answer | Judgement) -> str:
    if isinstance(part, Answer):
        return part.text
    return part.document if isinstance(part, Judgement) else task.labels[part]
