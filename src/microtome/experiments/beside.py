"""Rows of a stored re-initialisation, to lie over the rows of another experiment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.subject import Subject
from microtome.runs import Context, Result, Trial

REINITIALIZED = "reinitialized"  # the encoder of such rows
KEPT = ("fraction", "n_train", "seed", "metric", "primary", "value", "low", "high", "n")


def beside_trial(subject: Subject, experiment: str, folder: Path) -> Trial:
    """The trial that gives the rows of a run again: they are part of its request."""
    request = {"beside": rows_beside(folder, subject)}
    label = f"rows of {folder.name}"
    return subject.trial("beside:measure", experiment, request, label=label, trains=True)


def rows_beside(folder: Path, subject: Subject) -> list[dict[str, Any]]:
    """The primary scores of a re-initialisation from the top, of the same model and rows."""
    from microtome.runs import open_run

    wanted = subject.trial("beside:measure", "", {}, trains=True).content
    found = [
        {key: row[key] for key in KEPT} | {"removed": row["reinitialized"]}
        for record in open_run(folder).records.values()
        if record.ok and record.columns.get("experiment") == "reinitialization"
        if record.content == wanted
        for row in record.rows
        if row["side"] == "top" and row["metric"] == row["primary"]
    ]
    if not found:
        raise RequestError(
            f"--beside {folder} holds no reinitialization of {subject.model} on these rows of"
            f" {subject.task}",
            "give the folder of a run with --side top, the same model, task and --limit",
        )
    return found


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """The rows as they are."""
    empty = ("recipe", "feature", "depth", "delta", "delta_low", "delta_high")
    common = {"encoder": REINITIALIZED, **dict.fromkeys(empty)}
    return Result(rows=[{**common, **row} for row in request["beside"]])
