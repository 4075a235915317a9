"""The papers' claims and figures, each with what rows say about it.

A claim is shown with every run of its experiment. A printed number is shown only where the model,
the task and the split are the paper's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from microtome.papers.answer import Answer, Verdict
from microtome.papers.claims import Claim, claims
from microtome.papers.printed_numbers import PaperFigure, matching
from microtome.views import TidyRow, TidyRows

ELSEWHERE = "see the finding"
NOT_COMPARED = "not measured here"
NOT_RUN = "not part of this run"
# What the papers' tables show: the first layers duplicated, members picked on the rows they score.
_PAPERS_VALUES = {
    "stage": (None, "finetuned"),
    "strategy": (None, "baseline", "first"),
    "selection": (None, "none", "same rows"),
    "fraction": (None, 1.0),
}


@dataclass(frozen=True)
class Reported:
    """A claim or figure of a paper: what it is, what was reported and measured, and its source.

    A claim has a ``key`` within its experiment, and a verdict where these rows are about it.
    ``about`` is the model and task, where a page has several.
    """

    what: str
    paper: str
    measured: str
    source: str
    verdict: Verdict | None = None
    interval: str = ""
    key: str = ""
    about: str = ""


def reported(
    experiment: str, model: str, task: str, rows: TidyRows, *, measured: Mapping[str, Answer]
) -> tuple[Reported, ...]:
    """What the papers say about an experiment, next to what its rows say; nothing without rows.

    ``measured`` answers claims: a claim's key → what was measured, as ``EXPERIMENT.claims(rows)``
    gives it.
    """
    if not rows:
        return ()
    otherwise = Answer(NOT_COMPARED if measured else ELSEWHERE)
    return (
        *(of_claim(claim, measured.get(claim.key, otherwise)) for claim in claims(experiment)),
        *(
            of_figure(figure, rows)
            for figure in matching(model, task, experiment)
            if _has_as_many(figure, rows)
        ),
    )


def _has_as_many(figure: PaperFigure, rows: TidyRows) -> bool:
    """Whether as many rows were scored as in the paper: another split, or a part, has other n."""
    known = {row["n"] for row in rows if row.get("n") is not None}
    return figure.n is None or not known or figure.n in known


def of_claim(claim: Claim, measured: Answer) -> Reported:
    """A claim with what was measured of it."""
    words = f"{claim.words} ({claim.note})" if claim.note else claim.words
    return Reported(
        claim.what,
        words,
        measured.words,
        claim.source,
        measured.verdict,
        measured.interval,
        claim.key,
    )


def of_figure(figure: PaperFigure, rows: TidyRows) -> Reported:
    """A printed number with what was measured of it."""
    note = f" ({figure.note})" if figure.note else ""
    return Reported(
        f"{figure.metric} of {figure.model} on {figure.task}: {figure.setting}",
        f"{_printed(figure)}{note}",
        _mean(figure, rows),
        figure.source,
    )


def _printed(figure: PaperFigure) -> str:
    """A figure as the papers print it: scores with two digits, gains with a sign."""
    if figure.metric != "gain":
        return f"{100 * figure.value:.2f} %"
    return f"{100 * figure.value:+.1f}".replace("-", "−")


def _mean(figure: PaperFigure, rows: TidyRows) -> str:
    """The mean over the rows that a figure is about: over seeds, where there are several."""
    if not figure.columns:
        return ELSEWHERE
    values = [row["value"] for row in rows if _is_about(figure, row)]
    if not values:
        return NOT_RUN
    runs = "one run" if len(values) == 1 else f"mean of {len(values)} runs"
    return f"{100 * fmean(values):.2f} % ({runs})"


def _is_about(figure: PaperFigure, row: TidyRow) -> bool:
    """Whether a row has a value of what the figure shows."""
    value = row.get("value")
    return (
        row.get("metric") == figure.metric
        and all(row.get(column) in values for column, values in _PAPERS_VALUES.items())
        and all(row.get(column) == needed for column, needed in figure.columns)
        and value is not None
        and math.isfinite(value)
    )
