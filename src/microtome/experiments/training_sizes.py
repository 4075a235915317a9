"""Training sizes of a sweep: checked before anything runs, named, and put in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from microtome.errors import DataError, RequestError
from microtome.experiments.subject import Subject


def n_rows_of(subject: Subject, fractions: Iterable[float]) -> dict[float, int]:
    """How many training rows each fraction is; one that can't be had is refused."""
    from microtome.tasks.sampling import n_of_fraction

    if not subject.dataset.labelled:
        raise DataError(
            f"{subject.task} has rows without labels, and training needs labels",
            "name a label column: --label-column",
        )
    train, _ = subject.rows.open_for_training()
    found = {fraction: n_of_fraction(fraction, len(train)) for fraction in fractions}
    for fraction, n_rows in found.items():
        if n_rows < max(2, len(train.labels)):
            raise RequestError(
                f"--fractions {fraction:g} given: {n_rows} of {len(train):,} rows to train on",
                f"{max(2, len(train.labels))} rows wanted at least, one for every label",
            )
    return found


def check_recipe(subject: Subject, settings: Mapping[str, Any]) -> None:
    """Refuse a recipe that nobody can train by, before anything is trained."""
    from microtome.training.recipe import recipe_for

    names = ("epochs", "batch_size", "learning_rate")
    recipe_for(subject.dataset.task).but(**{name: settings[name] for name in names})


def size_name(fraction: float) -> str:
    """A fraction as people say it: all rows, 10 % of the rows, 640 rows."""
    if fraction == 1:
        return "all rows"
    return f"{100 * fraction:g} % of the rows" if fraction < 1 else f"{fraction:,.0f} rows"


def sizes(rows: Iterable[Mapping[str, Any]]) -> list[float]:
    """The fractions among some rows, the largest training set first."""
    n_rows = {row["fraction"]: row["n_train"] for row in rows if row["fraction"] is not None}
    return sorted(n_rows, key=lambda fraction: -n_rows[fraction])
