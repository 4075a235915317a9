"""One experiment run in this process (`from experiment_rows import rows_of, study_here`)."""

from __future__ import annotations

from pathlib import Path

from microtome.experiments import Subject, find_experiment, subject_of
from microtome.runs import run_here
from microtome.study import Study, Wanted, Workers, study
from microtome.tasks import DataSpec


def rows_of(
    name: str, folder: str | Path, data: DataSpec | None = None, **settings: object
) -> list:
    """The rows of an experiment that is one trial."""
    experiment = find_experiment(name)
    subject = subject_of(str(folder), data or DataSpec(), needs_rows=False)
    (trial,) = experiment.plan(subject, experiment.settings(settings))
    return run_here(trial).rows


def study_here(name: str, subject: Subject, out: Path, **settings: object) -> Study:
    """The whole study, written to ``out``; no trial of it may fail."""
    workers = Workers(n_workers=0, progress=False)
    done = study(subject, [Wanted(name, settings)], out, workers=workers)
    assert not done.parts[0].problems, done.parts[0].problems
    return done
