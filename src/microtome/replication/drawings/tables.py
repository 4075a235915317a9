"""Tables that are counted rather than measured: models and tasks."""

from __future__ import annotations

from microtome.papers.exhibit import Exhibit
from microtome.replication.measured import Measured, name_of
from microtome.tasks import find_task
from microtome.views import Table, View


def models(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """Layers, width, heads and parameters of every model, from their files."""
    columns = ("model", "family", "layers", "width", "heads", "parameters", "shared")
    lines = tuple(
        (name_of(model), *(facts[column] for column in columns[1:-1]), _yes(facts["shared"]))
        for model, facts in measured.stacks.items()
    )
    return (Table(exhibit.title, columns, lines),)


def _yes(value: object) -> str:
    return "yes" if value else "no"


def sizes_of_tasks(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """Rows of every task: what there is to learn from and what is measured, both counted.

    Dev and test have as many rows as the data set is published with, those without a label too.
    """
    columns = ("task", "kind", "metric", "train", "dev", "test", "measured_split", "measured_rows")
    lines = []
    for task, facts in measured.sizes.items():
        published = {
            split.name: split.n_rows + split.n_unlabelled for split in find_task(task).splits
        }
        known = {**facts, "dev": published.get("dev"), "test": published.get("test")}
        lines.append((task, *(known[column] for column in columns[1:])))
    return (Table(exhibit.title, columns, tuple(lines)),)
