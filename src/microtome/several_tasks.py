"""One experiment on several tasks: where the rows of each lie, and their curves in one picture."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from microtome.errors import RequestError
from microtome.experiments import Rows
from microtome.views import Curve, View

MOST_LINES = 6  # pens there are


def task_names(text: str) -> list[str]:
    """``a,b`` as names; one name alone, an unknown one and a name given twice are refused."""
    from microtome.tasks import find_task

    names = [name.strip() for name in text.split(",") if name.strip()]
    if len(names) < 2:
        raise RequestError(f"--tasks {text} given, two tasks or more wanted", "for one: --task")
    if twice := [name for name in names if names.count(name) > 1]:
        raise RequestError(f"--tasks {text} names {twice[0]} twice")
    return [find_task(name).name for name in names]


def rows_of_each(rows: Rows, tasks: Sequence[str]) -> list[Rows]:
    """The rows of every task; ``rows.path`` is a folder with a folder of native files for each."""
    from microtome.tasks import find_task

    if rows.path is not None and all(find_task(task).embedded for task in tasks):
        raise RequestError(
            f"--data {rows.path} given, but {', '.join(tasks)} are embedded", "leave it out"
        )
    return [replace(rows, task=task, path=_folder(rows.path, task)) for task in tasks]


def _folder(root: Path | None, task: str) -> Path | None:
    """``glue`` and ``sst2`` → ``glue/SST-2``; an embedded task needs none."""
    from microtome.tasks import find_task

    if root is None or find_task(task).embedded:
        return None
    root = root.expanduser()
    if not root.is_dir():
        raise RequestError(f"--tasks with --data {root}, which is no folder",
                           "give the folder that holds a folder for each task")  # fmt: skip
    found = [one for one in sorted(root.iterdir()) if one.is_dir() and _same(one.name, task)]
    if not found:
        raise RequestError(f"{root} has no folder for {task}",
                           "the folders are called as the tasks, SST-2 or sst2")  # fmt: skip
    return found[0]


def _same(folder: str, task: str) -> bool:
    one, other = (re.sub(r"[^a-z0-9]", "", name.lower()) for name in (folder, task))
    return one == other


def overlaid(views: Mapping[str, Sequence[View]]) -> Iterator[Curve]:
    """Curves that every task has, as one picture each; controls stay in the tasks' own sections.

    Where there are more lines than can be told apart, each kind of line has its own picture.
    """
    by_task = {
        task: {view.title: view for view in own if isinstance(view, Curve)}
        for task, own in views.items()
    }
    first, *others = by_task.values()
    for title, curve in first.items():
        if not all(title in own for own in others):
            continue
        shown = f"Task by task: {title[:1].lower()}{title[1:]}"
        labels = {own[title].y_label for own in by_task.values()}
        metric = labels.pop() if len(labels) == 1 else "each task's metric"
        lines = [
            (task, line)
            for task, own in by_task.items()
            for line in own[title].series
            if not line.is_control
        ]
        kinds = list(dict.fromkeys(line.name for _, line in lines))
        together = [kinds] if len(lines) <= MOST_LINES else [[kind] for kind in kinds]
        for own_kinds in together:
            chosen = [
                replace(line, name=f"{task}: {line.name}")
                for task, line in lines
                if line.name in own_kinds
            ]
            name = shown if len(together) == 1 else f"{shown}, {own_kinds[0]}"
            if chosen:
                yield replace(curve, title=name, y_label=metric, series=tuple(chosen))
