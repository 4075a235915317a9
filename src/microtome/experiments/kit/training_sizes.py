"""Training sizes of a sweep: checked before anything runs, named, and put in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from microtome.errors import DataError, RequestError
from microtome.experiments.kit.subject import Subject
from microtome.tasks.sampling import n_of_fraction


def n_rows_of(subject: Subject, fractions: Iterable[float]) -> dict[float, int]:
    """How many training rows each fraction is; one that can't be had is refused."""
    if not subject.dataset.labelled:
        raise DataError(
            f"{subject.task} has rows without labels, and training needs labels",
            "name a label column: --label-column",
        )
    train = subject.training
    by_fraction = {fraction: n_of_fraction(fraction, len(train)) for fraction in fractions}
    for fraction, n_rows in by_fraction.items():
        if n_rows < max(2, len(train.labels)):
            raise RequestError(
                f"--fractions {fraction:g} leaves {n_rows} of {len(train):,} rows to train on",
                f"take at least {max(2, len(train.labels))} rows, one for every label",
            )
    return by_fraction


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
