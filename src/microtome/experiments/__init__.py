"""One file is one method section of a paper: plan, measure, view, finding."""

from __future__ import annotations

from microtome.experiments.experiment import (
    MODULES,
    Experiment,
    all_experiments,
    describe,
    find_experiment,
)
from microtome.experiments.subject import Rows, Subject, subject_of

__all__ = [
    "MODULES",
    "Experiment",
    "Rows",
    "Subject",
    "all_experiments",
    "describe",
    "find_experiment",
    "subject_of",
]
