"""Rows of a stored re-initialisation, to be drawn over the curves of probes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.kit.subject import DATA, MODEL, TRAINING, Subject
from microtome.runs import open_run

REINITIALIZED = "reinitialized"  # the encoder of such rows
KEPT = ("fraction", "n_train", "seed", "metric", "primary", "value", "low", "high", "n")


def rows_of_run(folder: Path, subject: Subject) -> list[dict[str, Any]]:
    """The primary scores of a re-initialisation from the top, of the same model and rows."""
    content = subject.trial("finetuning.train", {}, reads=(MODEL, DATA, TRAINING)).content
    rows = [
        {key: row[key] for key in KEPT} | {"removed": row["reinitialized"]}
        for record in open_run(folder).records.values()
        if record.ok and record.columns.get("experiment") == "reinitialization"
        # A run of an older version doesn't know its tokenizer's content.
        if record.content.items() <= content.items()
        for row in record.rows
        if row["side"] == "top" and row["metric"] == row["primary"]
    ]
    if not rows:
        raise RequestError(
            f"--beside {folder} holds no reinitialization of {subject.model} on these rows of"
            f" {subject.task}",
            "give the folder of a run with --side top, the same model, task and --limit",
        )
    return rows
