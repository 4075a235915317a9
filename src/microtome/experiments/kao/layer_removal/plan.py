"""Layer removal without training: what may be cut as it is (cf. Kao et al. 2021, abstract).

Blocks of neighbouring layers, single ones and both ends among them, are removed from the fine-tuned
model; every metric of the task is taken before and after on the same rows. For every number of
layers the best cut is picked on some rows and scored on others. Every cut comes with its price:
parameters, FLOPs per token, milliseconds and speed relative to the base. ALBERT's layers share
their weights: each gets a copy of its own first, in the baseline too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microtome.experiments.kao.layer_removal.cuts import STRATEGIES, all_cuts
from microtome.experiments.kit import arms
from microtome.experiments.kit.arms import head_to_score
from microtome.experiments.kit.judging import METRIC, TEST_SPLIT, chosen_metric, on_test_split
from microtome.experiments.kit.layers import layer_chunks, layers_of
from microtome.experiments.kit.subject import Subject
from microtome.runs import Trial

SECTION = "Kao et al. 2021, abstract (removal), without training"
QUESTION = "Which layers may be cut, and what does it save?"
COLUMNS = (
    "strategy", "edit", "layers", "metric", "primary", "value", "delta", "low", "high", "p",
    "p_holm", "p_bh", "p_maxt", "parameters", "flops_per_token", "speed",
)  # fmt: skip
OPTIONS = (METRIC, TEST_SPLIT, *arms.OPTIONS)
TIMED_TEXTS = 125  # that each model reads, with the padding, for its timing


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """Answers of all cuts, the speed of every number of layers, then the comparisons.

    Speeds differ from run to run, so each number of layers is timed once, in a trial of its own:
    everything else is a function of the request. The baseline is in each comparison, because
    differences are paired.
    """
    head = head_to_score(subject, settings)
    layers = layers_of(subject.model_path)
    n_layers, cuts = layers.count, all_cuts(layers.count, layers.rules)
    answers = [
        subject.trial(
            "layer-removal.predict_cuts",
            {"first_removed": [first, last]},
            needs=head,
            label=f"remove blocks from layers {first}–{last - 1} on",
            work=n_layers
            + sum(
                n_layers - cut.removed[0] - len(cut.removed)
                for cut in cuts
                if first <= cut.removed[0] < last
            ),
        )
        for first, last in layer_chunks(n_layers)
    ]
    times = [
        subject.trial(
            "layer-removal.time_layers", {"layers": count}, needs=head,
            label=f"time {count} of {n_layers} layers",
            work=(n_layers + count) * TIMED_TEXTS / len(subject.dataset),
        )
        for count in range(n_layers - 1, 0, -1)
    ]  # fmt: skip
    needs = (*head, *answers, *times)
    judged = {"metric": chosen_metric(subject, settings)}
    comparisons = [
        subject.trial(
            "layer-removal.compare_cuts", {"strategy": strategy, **judged}, needs=needs,
            label=f"compare: remove {strategy}",
        )
        for strategy in STRATEGIES
    ]  # fmt: skip
    best = subject.trial(
        "layer-removal.pick_best", judged, needs=needs, label="pick the best cut of every size"
    )
    trials = [*head, *answers, *times, *comparisons, best]
    if settings[TEST_SPLIT.name]:
        request = {**judged, "picked_on": subject.data.split}
        label = "score the best cut of every size on test"
        test = on_test_split(subject)
        trials.append(test.trial("layer-removal.score_on_test", request, needs=needs, label=label))
    return trials
