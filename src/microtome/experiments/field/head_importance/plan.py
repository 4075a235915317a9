"""Head importance by gradients, compared with what disabling each head really changes.

Every head's output and every layer's update is multiplied by a gate of 1; importance is the mean
over texts of |∂ loss / ∂ gate| (Michel et al. 2019), for all heads and layers in one backward pass.
A layer's gate scales what the layer adds: input + gate · (output − input). Next to it the measured
change of the score: heads are disabled as ``head-disabling`` does (its very trials), layers removed
one by one. Attention rollout (Abnar & Zuidema 2020) is shown for a few texts; it is a picture of
where attention leads, not an importance: it knows neither values nor the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microtome.errors import DataError, RequestError
from microtome.experiments.kit import arms
from microtome.experiments.kit.judging import METRIC, chosen_metric
from microtome.experiments.kit.layers import layers_of
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import Subject
from microtome.experiments.kovaleva.head_disabling.plan import sweep_trials
from microtome.runs import Trial

SECTION = "Not of the papers: gradient importance, attention rollout"
QUESTION = "Which heads and layers does the loss depend on, and does disabling them agree?"
COLUMNS = (
    "unit", "layer", "head", "importance", "low", "high", "n", "metric", "delta", "delta_low",
    "delta_high", "text", "position", "token", "rollout",
)  # fmt: skip
HOW = "uniform"  # heads are disabled as the paper does
OPTIONS = (
    Option("scores_only", False, "leave out what disabling and removing change", "flag"),
    Option("examples", 2, "texts that attention rollout is shown for", "whole"),
    METRIC,
    *arms.OPTIONS,
)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """Gradients, rollout and, unless left out, the sweep over heads and layers; then the rows."""
    if settings["examples"] < 0:
        raise RequestError(f"--examples must be 0 or more, got {settings['examples']}")
    head = arms.head_to_score(subject, settings)
    gradients = gradient_trial(subject, head)
    measured = () if settings["scores_only"] else measured_trials(subject, head)
    request = {"metric": chosen_metric(subject, settings), "how": HOW}
    needs = (*head, gradients, *measured)
    trials = [
        *needs,
        subject.trial("head-importance.compare", request, needs=needs, label="compare"),
    ]
    if settings["examples"]:
        trials.append(
            subject.trial(
                "head-importance.roll_out", {"examples": settings["examples"]}, needs=head,
                label="attention rollout of a few texts",
            )
        )  # fmt: skip
    return trials


def gradient_trial(subject: Subject, head: tuple[Trial, ...]) -> Trial:
    """The gates' gradients on all measured rows; refused where there is no loss of a row."""
    kind = subject.dataset.task.kind
    if kind == "retrieval":
        raise RequestError(
            "a search has no loss of its own to differentiate: its queries are compared with all"
            " documents",
            "measure on pairs with a number, or on labelled rows",
        )
    if not subject.dataset.labelled and not subject.is_scored_on_masks:
        raise DataError(
            f"{subject.task} has no labels, and importance is the gradient of a loss",
            "name a label column: --label-column",
        )
    return subject.trial(
        "head-importance.gradients", {}, needs=head, label="gradients of all heads and layers",
        work=arms.PASSES_TO_LEARN * layers_of(subject.model_path).count,
    )  # fmt: skip


def measured_trials(subject: Subject, head: tuple[Trial, ...]) -> tuple[Trial, ...]:
    """The answers with each head disabled, and with each layer removed."""
    n_layers = layers_of(subject.model_path).count
    removed = subject.trial(
        "head-importance.remove_each", {}, needs=head, label="remove every layer in turn",
        work=n_layers * (n_layers + 1) / 2,
    )  # fmt: skip
    return (*sweep_trials(subject, head, HOW), removed)
