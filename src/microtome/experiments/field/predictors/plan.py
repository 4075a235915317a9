"""Predictors: whether cheap scores of layers and heads tell what really cutting them costs.

Every score of ``layer-similarity`` and ``head-importance``, attention entropy and the norms of
weights is compared with the measured change of the task's score when the layer is removed or the
head disabled: by rank correlation over all of them, and by what it costs to cut the layers or heads
that a score calls cheapest instead of those that measuring calls cheapest. Cuts are chosen on one
half of the rows and scored on the other. Controls: a random order, and for layers the habit of
cutting the top. Each comes with its seconds, next to those of the true sweep.
With ``--heal-steps`` the model without each layer also learns to answer as the whole one does, as
``trim`` heals, and the scores (and measuring without training) are compared with what is lost then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microtome.errors import DataError, RequestError
from microtome.experiments.field.head_importance.plan import HOW, gradient_trial, measured_trials
from microtome.experiments.field.layer_similarity.plan import similarity_trial
from microtome.experiments.field.trim.plan import healed_apart, measured_apart
from microtome.experiments.kao.layer_removal.cuts import cuts_of
from microtome.experiments.kit import arms
from microtome.experiments.kit.judging import METRIC, chosen_metric
from microtome.experiments.kit.layers import layers_of
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import Subject
from microtome.runs import Trial

SECTION = "Not of the papers: cheap scores against the measured change"
QUESTION = "Which cheap score of layers and heads tells what cutting them costs?"
COLUMNS = (
    "stage", "unit", "score", "layer", "head", "value", "loss", "spearman", "low", "high", "n",
    "metric", "n_cut", "cut", "delta", "delta_low", "delta_high", "regret", "regret_low",
    "regret_high", "seconds", "sweep_seconds",
)  # fmt: skip
OPTIONS = (
    Option("heal_steps", 0, "heal the model without each layer for so many steps, too", "whole"),
    Option("text", None, "texts to heal on, one per line; the training rows unless given", "path"),
    METRIC,
    *arms.OPTIONS,
)
LEAST_ROWS = 8  # to be halved


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """The scores, the sweep, then the comparison; scores that need a loss where there is one."""
    if settings["heal_steps"]:
        _check_healing(subject, settings)
        subject = measured_apart(subject, settings)
    if subject.dataset.n_scored < LEAST_ROWS:
        raise DataError(
            f"expected {LEAST_ROWS} rows or more, half to choose cuts on and half to score them,"
            f" got {subject.dataset.n_scored}"
        )
    head = arms.head_to_score(subject, settings)
    scores = {
        "states": similarity_trial(subject, head),
        "weights": subject.trial(
            "predictors.weights_and_maps", {}, needs=head, label="norms and attention entropy",
            work=layers_of(subject.model_path).count,
        ),
    }  # fmt: skip
    if subject.dataset.task.kind != "retrieval":  # a search has no loss of a row
        scores["gradients"] = gradient_trial(subject, head)
    *heads, layers = measured_trials(subject, head)
    metric = chosen_metric(subject, settings)
    request: dict[str, Any] = {
        "metric": metric, "how": HOW,
        "trials": {name: trial.hash for name, trial in scores.items()},
        "sweep": {"head": [trial.hash for trial in heads], "layer": [layers.hash]},
    }  # fmt: skip
    needs: tuple[Trial, ...] = (*head, *scores.values(), *heads, layers)
    if settings["heal_steps"]:
        answers, healed = healed_apart(
            subject, head, _removals(subject), metric, steps=settings["heal_steps"],
            text=settings["text"], fraction=settings["fraction"],
        )  # fmt: skip
        needs = (*needs, answers, *healed)
        request["healed"] = [trial.hash for trial in healed]
    comparison = subject.trial(
        "predictors.compare", request, needs=needs, label="cut by every score",
        work=10.0 * layers_of(subject.model_path).count,
    )  # fmt: skip
    return [*needs, comparison]


def _removals(subject: Subject) -> list[str]:
    """The edits that remove each layer that may go."""
    layers = layers_of(subject.model_path)
    return [cut.edit for cut in cuts_of("each", layers.count, layers.rules).values() if cut.order]


def _check_healing(subject: Subject, settings: Mapping[str, Any]) -> None:
    """Refuse what can't be healed, before anything is measured."""
    if settings["heal_steps"] < 0:
        raise RequestError(f"--heal-steps must be 0 or more, got {settings['heal_steps']}")
    layers = layers_of(subject.model_path)
    if layers.shared:
        raise RequestError(
            f"{subject.model} applies one layer at every depth, so no single one can be healed",
            "leave --heal-steps out",
        )
