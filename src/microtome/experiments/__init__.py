"""The papers' experiments: a folder each, split by phase into plan, measure, report and claims.

``plan`` turns a subject and settings into trials, ``measure`` runs in workers and turns a trial
into rows, ``report`` turns rows into views and words, ``claims`` tells what the paper's claims look
like in these rows. Only ``measure`` needs torch.
"""

from microtome.experiments.catalogue import FOLDERS, experiment_names
from microtome.experiments.kit.experiment import Experiment, all_experiments, find_experiment
from microtome.experiments.kit.subject import Subject, subject_of

__all__ = [
    "FOLDERS",
    "Experiment",
    "Subject",
    "all_experiments",
    "experiment_names",
    "find_experiment",
    "subject_of",
]
