"""Where experiments are, in the papers' order; and where the function of a trial is found.

Installed packages add to them: see ``microtome.plugins``.

A trial has a logical name, ``EXPERIMENT.FUNCTION``: its hash covers the name, so that stored runs
stay valid when code moves. :func:`function_of` is the one place that turns a name into a module.
"""

from __future__ import annotations

from microtome.plugins import Plugin, added

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
    "trim": "field.trim",
    "layer-similarity": "field.layer_similarity",
    "head-importance": "field.head_importance",
    "predictors": "field.predictors",
    "patching": "field.patching",
    "lens": "field.lens",
    "mdl-probing": "field.mdl_probing",
}
# Trials of no experiment by name: those that several need, and those of ``microtome compare``.
SHARED = {"finetuning": "kit.training", "comparison": "field.comparison.measure"}
TAKEN = {**FOLDERS, **SHARED}
"""Names that no package can give to an experiment of its own."""


def plugins() -> dict[str, Plugin]:
    """The experiments that installed packages add, by name."""
    return added("experiment", TAKEN)


def experiment_names() -> tuple[str, ...]:
    """Every experiment: ours in the papers' order, then those of installed packages."""
    return *FOLDERS, *plugins()


def folder_of(name: str) -> str:
    """The package that holds an experiment's plan, measure, report and claims."""
    if name in FOLDERS:
        return f"microtome.experiments.{FOLDERS[name]}"
    return plugins()[name].entry.value


def function_of(trial: str) -> str:
    """Where the work of a trial is done, as ``module:function``.

    function_of("duplication.decode")   →   "microtome.experiments.kao.duplication.measure:decode"
    """
    owner, _, function = trial.partition(".")
    if owner in SHARED:
        return f"microtome.experiments.{SHARED[owner]}:{function}"
    return f"{folder_of(owner)}.measure:{function}"
