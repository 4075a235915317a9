"""Which output of a checkpoint's head is which label of a task."""

from __future__ import annotations

import re
from collections.abc import Mapping

from microtome.errors import RequestError
from microtome.tasks.tags import OUTSIDE, is_tag
from microtome.tasks.task import Task


def label_map(
    task: Task, id2label: Mapping[int, str] | None, num_labels: int
) -> tuple[tuple[int, ...], str]:
    """The head's output for each label in the task's order, and in words how they were matched.

    ``logits[:, permutation]`` is in the task's order.
    """
    _check_size(task, num_labels)
    in_order = tuple(range(num_labels))
    if task.kind == "reranking":
        one = num_labels == 1
        return in_order, f"relevance is {'the output' if one else 'the second output − the first'}"
    if task.kind == "regression":
        return in_order, "one output, the predicted number"
    checkpoint = {int(index): str(name) for index, name in (id2label or {}).items()}
    names = [checkpoint.get(index, "") for index in in_order]
    places = {plain_label(name): index for index, name in enumerate(names)}
    labels = [plain_label(label) for label in task.labels]
    if len(places) == num_labels and set(places) == set(labels):
        order = tuple(places[label] for label in labels)
        how = "the same order" if order == in_order else f"reordered, outputs {order}"
        return order, f"labels matched by the checkpoint's names: {how}"
    shown = ", ".join(name or "none" for name in names)
    return in_order, (
        f"labels taken by index ({', '.join(task.labels)}): the checkpoint's names ({shown})"
        " aren't the task's"
    )


def tag_map(
    task: Task, id2label: Mapping[int, str] | None, num_labels: int
) -> tuple[tuple[str, ...], str]:
    """The tag that each output of a token head says, and in words how they were matched.

    Types of entities that the data doesn't have are kept: predicting one is wrong.
    """
    checkpoint = {int(index): str(name) for index, name in (id2label or {}).items()}
    spellings = {label.casefold(): label for label in task.labels}
    names = [checkpoint.get(index, "") for index in range(num_labels)]
    spoken = tuple(spellings.get(name.casefold(), name) for name in names)
    if all(map(is_tag, spoken)) and any(tag in task.labels for tag in spoken if tag != OUTSIDE):
        return spoken, "tags matched by the checkpoint's names"
    if num_labels == len(task.labels) and all(name.startswith("LABEL_") for name in names):
        return task.labels, f"tags taken by index ({', '.join(task.labels)})"
    raise RequestError(
        f"the model's tags ({', '.join(name or 'none' for name in names)}) aren't those of"
        f" {task.name} ({', '.join(task.labels)})",
        "name the data that the model was trained for",
    )


def _check_size(task: Task, num_labels: int) -> None:
    n_labels = len(task.labels)
    fitting = {
        "classification": (n_labels,), "multilabel": (n_labels,), "regression": (1,),
        "reranking": (1, 2),
    }.get(task.kind)  # fmt: skip
    if fitting is None:
        raise RequestError(f"{task.name} ({task.kind}) isn't measured with a classification head")
    if num_labels in fitting:
        return
    labels = f": {', '.join(task.labels)}" if task.labels else ""
    plural = "" if num_labels == 1 else "s"
    is_own = not task.splits and task.labels
    raise RequestError(
        f"the model's head has {num_labels} output{plural},"
        f" {task.name} needs {' or '.join(map(str, fitting))} ({task.kind}{labels})",
        "name all labels of the model in its order: --labels"
        if is_own
        else "fine-tune on this task first, or name the task that the model was trained for",
    )


def plain_label(name: str) -> str:
    """Names match whatever their case and separators: NOT_ENTAILMENT is not-entailment."""
    return re.sub(r"[\W_]+", " ", name).strip().casefold()
