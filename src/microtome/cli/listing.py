"""``microtome list``: what there is; ``microtome cache``: the encodings kept on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import typer

from microtome import plugins
from microtome.cli.output import log, show, table
from microtome.cli.parameters import Json, Quiet

Part = TypeVar("Part")


class Kind(StrEnum):
    """What can be listed."""

    models = "models"
    tasks = "tasks"
    experiments = "experiments"
    families = "families"
    edits = "edits"
    papers = "papers"


def list_items(
    kind: Annotated[Kind, typer.Argument(help="What to list.", show_default=False)],
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """List the names that the other commands take."""
    items = _LISTS[kind]()
    columns = _SHOWN[kind]
    rows = [[_cell(item.get(column)) for column in columns] for item in items]
    show(
        {"kind": kind.value, "items": items},
        as_json=json,
        for_people=lambda console: console.print(table("", columns, rows)),
    )


def _models() -> list[dict[str, Any]]:
    from microtome.models import list_models

    return list_models()


def _families() -> list[dict[str, Any]]:
    from microtome.families import FAMILIES, family_names, find_family

    families = _with_plugins("family", family_names(), find_family, [f.name for f in FAMILIES])
    return [{"name": f.name, "model_types": list(f.model_types)} for f in families]


def _tasks() -> list[dict[str, Any]]:
    from microtome.tasks.catalogue import TASKS, describe, find_task, task_names

    return [describe(task) for task in _with_plugins("task", task_names(), find_task, TASKS)]


def _experiments() -> list[dict[str, Any]]:
    from microtome.experiments import experiment_names, find_experiment
    from microtome.experiments.catalogue import TAKEN

    found = _with_plugins("experiment", experiment_names(), find_experiment, TAKEN)
    return [experiment.described() for experiment in found]


def _with_plugins(
    kind: plugins.Kind, names: Iterable[str], find: Callable[[str], Part], ours: Iterable[str]
) -> list[Part]:
    """What ``find`` gives for the names; a package that doesn't work is told in a line."""
    parts, problems = plugins.working(names, find)
    for problem in [*problems, *plugins.clashes(kind, ours)]:
        log(f"left out: {problem}")
    return parts


def _edits() -> list[dict[str, Any]]:
    from microtome.edits import catalogue

    return [{"name": e.name, "form": e.form, "summary": e.summary} for e in catalogue()]


def _papers() -> list[dict[str, Any]]:
    from microtome.papers.exhibits import PAPERS

    return [paper.described() for paper in PAPERS.values()]


_LISTS: dict[Kind, Callable[[], list[dict[str, Any]]]] = {
    Kind.models: _models,
    Kind.tasks: _tasks,
    Kind.experiments: _experiments,
    Kind.families: _families,
    Kind.edits: _edits,
    Kind.papers: _papers,
}


# What fits on a terminal; --json has it all.
_SHOWN = {
    Kind.models: ("name", "family", "job", "layers", "heads", "width", "parameters", "source"),
    Kind.tasks: ("name", "kind", "metrics", "splits", "source"),
    Kind.experiments: ("name", "question", "section"),
    Kind.families: ("name", "model_types"),
    Kind.edits: ("form", "summary"),
    Kind.papers: ("name", "source", "exhibits"),
}


def _cell(value: object) -> object:
    if isinstance(value, dict):
        return " ".join(f"{name} {size:,}" for name, size in value.items() if size)
    if isinstance(value, int):
        return f"{value:,}"
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove everything in it.")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Show where encoded data sets are kept and how large they are, or remove them."""
    from microtome.tasks import cache_folder, cache_size, clear_cache

    n_freed = clear_cache() if clear else 0
    document = {"folder": str(cache_folder()), "bytes": cache_size(), "freed": n_freed}
    line = f"{document['folder']}: {document['bytes']:,} bytes"
    if clear:
        line += f", {n_freed:,} bytes freed"
    show(document, as_json=json, for_people=lambda console: console.print(line, markup=False))
