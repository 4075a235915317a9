"""Which output of a checkpoint's head is which label of a task."""

from __future__ import annotations

import re
from collections.abc import Mapping

from microtome.errors import RequestError
from microtome.tasks.task import Task


def label_map(
    task: Task, id2label: Mapping[int, str] | None, num_labels: int
) -> tuple[tuple[int, ...], str]:
    """The head's output for each label in the task's order, and in words how they were matched.

    ``logits[:, permutation]`` is in the task's order.
    """
    _check_size(task, num_labels)
    in_order = tuple(range(num_labels))
    if task.kind != "classification":
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


def _check_size(task: Task, num_labels: int) -> None:
    if task.kind not in ("classification", "regression"):
        raise RequestError(f"{task.name} ({task.kind}) isn't measured with a classification head")
    n_wanted = len(task.labels) if task.kind == "classification" else 1
    if num_labels == n_wanted:
        return
    labels = f": {', '.join(task.labels)}" if task.labels else ""
    plural = "" if num_labels == 1 else "s"
    is_own = not task.splits
    raise RequestError(
        f"the model's head has {num_labels} output{plural},"
        f" {task.name} needs {n_wanted} ({task.kind}{labels})",
        "name all labels of the model in its order: --labels"
        if is_own
        else "fine-tune on this task first, or name the task that the model was trained for",
    )


def plain_label(name: str) -> str:
    """Names match whatever their case and separators: NOT_ENTAILMENT is not-entailment."""
    return re.sub(r"[\W_]+", " ", name).strip().casefold()
