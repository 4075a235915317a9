"""Tables that are counted rather than measured: models and tasks."""

from __future__ import annotations

from microtome.papers.exhibit import Exhibit
from microtome.replication.measured import Measured, name_of
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
    """Rows of every task, counted."""
    columns = ("task", "kind", "metric", "train", "measured_split", "measured_rows")
    lines = tuple(
        (task, *(facts[column] for column in columns[1:])) for task, facts in measured.sizes.items()
    )
    return (Table(exhibit.title, columns, lines),)
