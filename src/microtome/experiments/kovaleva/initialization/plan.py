"""Initialisation (Kovaleva et al. 2019, "Change in self-attention patterns after fine-tuning").

The task's score from three starts: the pre-trained model without fine-tuning, the model fine-tuned
from normal-random weights, and the model fine-tuned from its pre-trained weights. The paper reports
35.9 points between the first and the last on average, and random starts that end below the
pre-trained model alone on STS-B and QNLI. The first of them has an untrained classifier, so it is
scored with 20 random heads. Two references are ours: a probe trained on the frozen model (start
``probe``), and a constant answer, the same whatever the text (start ``majority``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.kit import arms
from microtome.experiments.kit.arms import Arm, arm_trials, checked_fraction
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import DATA, MODEL, TRAINING, Subject
from microtome.runs import Trial
from microtome.tasks.encoding.texts import EMBEDDED_KINDS

NAME = "initialization"
SECTION = "Kovaleva et al. 2019, Change in self-attention patterns after fine-tuning"
QUESTION = "What does pre-training bring, and what does fine-tuning?"
COLUMNS = ("start", "seed", "metric", "value", "low", "high", "n")
OPTIONS = (
    arms.SEEDS,
    Option("heads", 20, "untrained heads on the pre-trained model", "whole"),
    *arms.OPTIONS,
)
# A start's name in rows, the edit before its fine-tuning, and its name for people.
TRAINED_STARTS = (
    ("finetuned", "", "pre-trained weights"),
    ("random", "randomize(seed={seed})", "random weights"),
)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """The untrained heads, the frozen probe, and both fine-tunings once per seed."""
    if subject.has_task_head:
        raise RequestError(
            f"{subject.model} is fine-tuned already, and initialization compares the starts",
            "give the pre-trained model",
        )
    heads = subject.trial(
        "initialization.score_untrained_heads",
        # An embedder has no head to draw: one score says all.
        {"heads": 1 if subject.dataset.task.kind in EMBEDDED_KINDS else settings["heads"]},
        label="score untrained heads",
    )
    references = subject.trial(
        "initialization.probe_frozen",
        {"fraction": checked_fraction(settings)},
        label="probe the frozen model",
        reads=(MODEL, DATA, TRAINING),
    )
    trained: list[Trial] = []
    for start, edit, weights in TRAINED_STARTS:
        for seed in settings["seeds"]:
            label = f"fine-tune from {weights}, seed {seed}"
            arm = Arm({"start": start}, edit.format(seed=seed), seed, label=label)
            trained += arm_trials(subject, NAME, settings, arm)
    return [heads, references, *trained]
