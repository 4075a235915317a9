"""Where experiments are, in the papers' order; and where the function of a trial is found.

A trial has a logical name, ``EXPERIMENT.FUNCTION``: its hash covers the name, so that stored runs
stay valid when code moves. :func:`function_of` is the one place that turns a name into a module.
"""

from __future__ import annotations

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
}
# Trials of no experiment by name: those that several need, and those of ``microtome compare``.
SHARED = {"finetuning": "kit.training", "comparison": "field.comparison.measure"}


def function_of(trial: str) -> str:
    """Where the work of a trial is done, as ``module:function``.

    function_of("duplication.decode")   →   "microtome.experiments.kao.duplication.measure:decode"
    """
    owner, _, function = trial.partition(".")
    module = SHARED.get(owner) or f"{FOLDERS[owner]}.measure"
    return f"microtome.experiments.{module}:{function}"
