"""Attention drift (Kovaleva et al. 2019, "Change in self-attention patterns after fine-tuning").

Per head the cosine between the flattened attention maps of the pre-trained and of the fine-tuned
model, averaged over the measured rows. The paper finds the last two layers changed most on all
tasks but QQP. It flattened padded maps; here only real tokens count. Two floors tell what a cosine
means: maps of different heads (the same layer's) are alike too, and so are two fine-tunings that
differ by their seed. Jensen–Shannon divergence is given as a second measure.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.kit import arms
from microtome.experiments.kit.arms import Arm, training_trial
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import Subject, model_input
from microtome.models.checkpoint import look_at
from microtome.models.configuration import size
from microtome.runs import Trial

SECTION = "Kovaleva et al. 2019, Change in self-attention patterns after fine-tuning"
QUESTION = "Whose attention does fine-tuning change?"
COLUMNS = (
    "layer", "head", "cosine", "low", "high", "n", "other_heads_cosine", "seed_cosine",
    "jensen_shannon", "seed",
)  # fmt: skip
BASE, AGAIN = "base", "again"
OPTIONS = (
    Option(BASE, None, "the pre-trained model; unless given, the model itself", "model"),
    Option(AGAIN, None, "a second fine-tuning: its cosine is a floor", "model"),
    Option("seeds", [0, 1], "fine-tunings of a model without a task head", "numbers"),
    *arms.OPTIONS,
)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """A model without a task head is fine-tuned, once per seed, and compared with itself."""
    inputs = {name: model_input(settings[name]) for name in (BASE, AGAIN) if settings[name]}
    for name, other in inputs.items():
        check_same_heads(subject, f"--{name} {settings[name]}", other.path)
    if subject.has_task_head and BASE not in inputs:
        state = "used as it is" if subject.is_used_as_is else "fine-tuned"
        raise RequestError(
            f"{subject.model} is {state}, and drift is a distance from the pre-trained model",
            "name that one: --base MODEL",
        )
    # Seed 0 is the very fine-tuning that other experiments ask for.
    tuned = {
        seed: training_trial(
            subject, settings, Arm(seed=seed, label=f"fine-tune {subject.model}, seed {seed}")
        )
        for seed in (() if subject.has_task_head else settings["seeds"])
    }
    comparison = subject.trial(
        "attention-drift.compare",
        {"seeds": {trial.hash: seed for seed, trial in tuned.items()}},
        needs=tuple(tuned.values()),
        inputs=inputs,
        label="compare attention maps",
    )
    return [*tuned.values(), comparison]


def check_same_heads(subject: Subject, name: str, folder: Path) -> None:
    """Refuse a model whose heads can't be compared one by one with the subject's.

    A size that a config leaves out is known once the models are loaded, and compared there.
    """
    ours, theirs = (
        look_at(place, links_into=Path(place.resolve().anchor))
        for place in (subject.model_path, folder)
    )
    for meaning in ("layers", "heads", "vocabulary"):
        expected, got = (size(each.config, each.facts.config, meaning) for each in (ours, theirs))
        if expected is not None and got is not None and expected != got:
            raise RequestError(
                f"expected {name} to have {meaning} {expected}, as {subject.model} has, got {got}",
                "heads can be compared one by one only where the models have the same shape",
            )
