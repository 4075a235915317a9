"""Every task by its name. Imports nothing heavy: ``list tasks`` and help use it."""

from __future__ import annotations

import difflib

from microtome.errors import RequestError
from microtome.plugins import added, working
from microtome.tasks import embedded, published
from microtome.tasks.task import Split, Task

TASKS = {task.name: task for task in published.TASKS + embedded.TASKS}
"""Our own; installed packages add to them."""


def task_names() -> tuple[str, ...]:
    """Every task's name: ours in the order of the documentation, then those of packages."""
    return *TASKS, *added("task", TASKS)


def all_tasks() -> tuple[Task, ...]:
    """Every task that has a name and works, in the order of the documentation."""
    return tuple(working(task_names(), find_task)[0])


def find_task(name: str) -> Task:
    """The task called ``name``: published, embedded, or a package's.

    An unknown name is refused with the nearest: ``find_task("micro-squad").metrics``.
    """
    if name in TASKS:
        return TASKS[name]
    if plugin := added("task", TASKS).get(name):
        return plugin.load(Task)
    tasks = task_names()
    near = difflib.get_close_matches(name.casefold(), tasks, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    raise RequestError(f"no task is called {name!r}", f"{hint}there are {', '.join(tasks)}")


def find_split(task: Task, name: str) -> Split:
    """The split called ``name``; an unknown one is refused with those that exist."""
    for split in task.splits:
        if split.name == name:
            return split
    names = ", ".join(split.name for split in task.splits) or "none"
    raise RequestError(f"{task.name} has no split {name!r}", f"its splits are {names}")


def describe(task: Task) -> dict[str, object]:
    """A task as ``list tasks --json`` shows it."""
    return {
        "name": task.name,
        "kind": task.kind,
        "metrics": list(task.metrics),
        "primary": task.primary,
        "labels": list(task.labels),
        "splits": {split.name: split.n_rows for split in task.splits},
        "source": "embedded" if task.embedded else "package" if task.folder else "files or hub",
        "papers": list(task.papers),
        "summary": task.summary,
    }
