"""The best head, disabled for good: a checkpoint with its certificate."""

from __future__ import annotations

from pathlib import Path

from microtome.edits import parse
from microtome.experiments.kit.subject import CHECKPOINT, Subject
from microtome.experiments.kovaleva.head_disabling.report import best_head_edit
from microtome.runs import RunResult
from microtome.surgery import operate
from microtome.views import TidyRows


def save_best_head(rows: TidyRows, result: RunResult, subject: Subject, out: Path) -> Path:
    """Save the model with the head disabled that honest selection picks most often.

    ``rows`` are those of head-disabling in the run ``result``. The model is the one that the run
    fine-tuned, or the subject's where it had a task head. Gives the folder.
    """
    edit = parse(best_head_edit(rows))
    folders = (result.checkpoint(trial) for trial in result.records)
    tuned = next((folder for folder in folders if folder is not None), None)
    return operate(subject.model_path if tuned is None else tuned / CHECKPOINT, edit, out).out
