"""Disabling self-attention heads (Kovaleva et al. 2019, "Disabling self-attention heads").

A disabled head attends to every real token alike (1/L). Every head, every whole layer and random
sets of heads are disabled in turn; every metric of the task is taken before and after on the same
rows. The paper reports single heads that help by 0.1 (STS-B) to 1.2 points (MRPC), and that on MRPC
and RTE a random head helps on average; it picks the best of 144 on the rows it reports. Here every
difference is paired and corrected for the number of heads, and the best head and the best layer are
scored on rows they weren't picked on. ALBERT's layers share their weights: each gets a copy of its
own first, in the baseline too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.kit import arms
from microtome.experiments.kit.judging import METRIC, TEST_SPLIT, chosen_metric, on_test_split
from microtome.experiments.kit.layers import layer_chunks, layers_of
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import Subject
from microtome.models.checkpoint import look_at_fetched
from microtome.runs import Trial

SECTION = "Kovaleva et al. 2019, Disabling self-attention heads"
QUESTION = "Which heads and layers does the model need for this task?"
COLUMNS = (
    "layer", "head", "metric", "primary", "value", "delta", "low", "high", "p", "p_holm",
    "p_bh", "p_maxt",
)  # fmt: skip
N_SIZES = 4  # of sets of heads: 2, 4, 8, 16
OPTIONS = (
    Option("how", "uniform", "uniform: 1/L; zero: no output at all"),
    METRIC,
    Option("splits", 5, "halves on which sets of heads are chosen; 0: no such sets", "whole"),
    Option("random_sets", 5, "random sets of 2, 4, 8, 16 heads, of each size", "whole"),
    TEST_SPLIT,
    *arms.OPTIONS,
)


def check_can_save(subject: Subject, settings: Mapping[str, Any]) -> None:
    """Refuse to save the best head before it is looked for, where no weights disable one so."""
    facts = look_at_fetched(subject.model_path).facts
    if settings.get("how", "uniform") == "uniform" and not facts.has_uniform_heads:
        raise RequestError(
            f"--save-best with how=uniform, but no weights of a {facts.name} head make its "
            "attention uniform",
            "add --how zero, or leave --save-best out",
        )


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """Chunks of the sweep, random and greedy sets, then one comparison of all of them."""
    _check_counts(settings)
    head = arms.head_to_score(subject, settings)
    how = {"how": settings["how"]}
    judged = {**how, "metric": chosen_metric(subject, settings)}
    layers = layers_of(subject.model_path)
    swept = (*head, *sweep_trials(subject, head, settings["how"]))
    trials = list(swept)
    if settings["random_sets"]:
        request = {**how, "sets": settings["random_sets"], "seed": 0}
        label = "disable random sets of heads"
        trials.append(
            subject.trial(
                "head-disabling.sweep_random_sets",
                request,
                needs=head,
                label=label,
                work=N_SIZES * settings["random_sets"] * layers.count,
            )
        )
    comparison = subject.trial(
        "head-disabling.compare", judged, needs=tuple(trials), label="compare"
    )
    if settings["splits"]:
        request = judged | {"splits": settings["splits"]}
        label = "choose sets of heads greedily"
        trials.append(
            subject.trial(
                "head-disabling.choose_greedily",
                request,
                needs=swept,
                label=label,
                work=N_SIZES * settings["splits"] * layers.count,
            )
        )
    trials.append(comparison)
    if settings["test_split"]:
        request = {**judged, "picked_on": subject.data.split}
        label = "score the best head and layer on test"
        test = on_test_split(subject)
        trials.append(test.trial("head-disabling.score_on_test", request, needs=swept, label=label))
    return trials


def sweep_trials(subject: Subject, head: tuple[Trial, ...], how: str = "uniform") -> list[Trial]:
    """The answers with each head, and each whole layer, disabled: a trial for some layers each.

    ``head`` is the fine-tuning that the subject needs first. Other experiments may need them, too.
    """
    layers = layers_of(subject.model_path)
    return [
        subject.trial(
            "head-disabling.sweep", {"layers": [first, last], "how": how}, needs=head,
            label=f"disable heads of layers {first}–{last - 1}",
            work=sum((layers.n_heads + 1) * (layers.count - at) for at in range(first, last)),
        )
        for first, last in layer_chunks(layers.count)
    ]  # fmt: skip


def _check_counts(settings: Mapping[str, Any]) -> None:
    for option in OPTIONS:
        if option.name in ("splits", "random_sets") and settings[option.name] < 0:
            raise RequestError(f"{option.flag} must be 0 or more, got {settings[option.name]}")
