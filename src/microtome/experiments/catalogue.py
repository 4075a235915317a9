"""The experiments by name, in the papers' order; and where the function of a trial is found.

A trial has a logical name, ``EXPERIMENT.FUNCTION``: its hash covers the name, so that stored runs
stay valid when code moves. :func:`function_of` is the one place that turns a name into a module.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from microtome.errors import RequestError

if TYPE_CHECKING:
    from microtome.experiments.kit.experiment import Experiment

FOLDERS = {
    "decoding": "kao.decoding",
    "duplication": "kao.duplication",
    "ensembling": "kao.ensembling",
    "reinitialization": "singh.reinitialization",
    "frozen-probing": "singh.frozen_probing",
    "weight-drift": "singh.weight_drift",
    "attention-patterns": "kovaleva.attention_patterns",
    "frame-relations": "kovaleva.frame_relations",
    "attention-drift": "kovaleva.attention_drift",
    "initialization": "kovaleva.initialization",
    "linguistic-features": "kovaleva.linguistic_features",
    "token-links": "kovaleva.token_links",
    "head-disabling": "kovaleva.head_disabling",
    "layer-removal": "kao.layer_removal",
}
SHARED = {"finetuning": "kit.training"}  # trials that several experiments need


def function_of(trial: str) -> str:
    """Where the work of a trial is done, as ``module:function``.

    function_of("duplication.decode")   →   "microtome.experiments.kao.duplication.measure:decode"
    """
    owner, _, function = trial.partition(".")
    module = SHARED.get(owner) or f"{FOLDERS[owner]}.measure"
    return f"microtome.experiments.{module}:{function}"


def find_experiment(name: str) -> Experiment:
    """The experiment called ``name``; an unknown one lists those there are."""
    if name not in FOLDERS:
        raise RequestError(f"no experiment is called {name!r}", f"there are {', '.join(FOLDERS)}")
    experiment: Experiment = import_module(f"microtome.experiments.{FOLDERS[name]}").EXPERIMENT
    return experiment


def all_experiments() -> list[Experiment]:
    """Every experiment, in the order of the papers."""
    return [find_experiment(name) for name in FOLDERS]
