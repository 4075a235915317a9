"""Training sizes of a sweep: checked before anything runs, named, and put in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from microtome.errors import DataError, RequestError
from microtome.experiments.finetuning import steps_of
from microtome.experiments.subject import Subject

if TYPE_CHECKING:
    from microtome.training.recipe import Recipe


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


def check_recipe(subject: Subject, settings: Mapping[str, Any]) -> Recipe:
    """The recipe that was asked for; one that nobody can train by is refused before anything is."""
    from microtome.training.recipe import recipe_for

    names = ("epochs", "batch_size", "learning_rate")
    own = recipe_for(subject.dataset.task, subject.model_path)
    return own.but(**{name: settings[name] for name in names})


def more_steps(recipe: Recipe, n_train: int, least_steps: int) -> int | None:
    """``least_steps`` where so many rows give fewer updates in the recipe's epochs, else None."""
    return least_steps if steps_of(recipe, n_train) < least_steps else None


def size_name(fraction: float) -> str:
    """A fraction as people say it: all rows, 10 % of the rows, 640 rows."""
    if fraction == 1:
        return "all rows"
    return f"{100 * fraction:g} % of the rows" if fraction < 1 else f"{fraction:,.0f} rows"


def size_with_rows(fraction: float, n_train: int) -> str:
    """A fraction with its rows counted, where it doesn't count them itself."""
    return size_name(fraction) if fraction > 1 else f"{size_name(fraction)} ({n_train:,})"


def sizes(rows: Iterable[Mapping[str, Any]]) -> list[float]:
    """The fractions among some rows, the largest training set first."""
    n_rows = {row["fraction"]: row["n_train"] for row in rows if row["fraction"] is not None}
    return sorted(n_rows, key=lambda fraction: -n_rows[fraction])
