"""Attention patterns (Kovaleva et al. 2019, "BERT's self-attention patterns").

Every head's map of every example gets one of five classes: vertical (stripes, to [CLS] and [SEP]),
diagonal (previous, next), vertical+diagonal, block (within each of two texts), heterogeneous. The
classifier is a small convolutional network trained on maps labelled by hand. The paper reports that
heterogeneous maps, which might hold something linguistic, are at most 32 % (MRPC) to 61 % (QQP), an
upper bound; its labels and its classifier weren't published. Here shares have intervals over
examples and are corrected for the classifier's held-out mistakes; one text alone is never block.
A model without a task head is fine-tuned first, unless it is to be looked at as it was pre-trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import microtome
from microtome.errors import RequestError
from microtome.experiments.kit import arms
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import Subject, file_input, subject_of
from microtome.runs import Trial
from microtome.tasks.data_spec import DataSpec

SECTION = "Kovaleva et al. 2019, BERT's self-attention patterns"
QUESTION = "Which patterns do attention maps have, and how many may hold more than one of these?"
COLUMNS = ("checkpoint", "layer", "head", "pattern", "share", "low", "high", "n", "corrected")
CLASSIFIER, PRETRAINED = "classifier", "pretrained"
# `observe.patterns` knows the place too, but needs torch.
SHIPPED = Path(microtome.__file__).parent / "embedded" / "patterns" / "classifier.safetensors"
OPTIONS = (
    Option("examples", 1000, "at most so many, as in the paper", "whole"),
    Option(CLASSIFIER, None, "one's own classifier of patterns, a file", "file"),
    Option(PRETRAINED, False, "the model as it is, not fine-tuned; texts need no labels", "flag"),
    *arms.OPTIONS,
)


def find_subject(model: str | None, data: DataSpec, settings: Mapping[str, Any]) -> Subject:
    """A file is measured whole where the model isn't to learn from one side of it."""
    subject = subject_of(model, data, revision=data.revision, trains=False)
    if settings[PRETRAINED] or subject.has_task_head:
        return subject
    if not subject.dataset.labelled:
        raise RequestError(
            f"{subject.task} has texts without labels, and fine-tuning needs labels",
            "look at the model as it was pre-trained: --pretrained; or name a label column",
        )
    return subject_of(model, data, revision=data.revision)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One pass over the examples; the classifier's file is part of what is hashed."""
    if settings[PRETRAINED]:
        check_pretrained(subject, settings)
    head = () if settings[PRETRAINED] else arms.head_first(subject, settings)
    trial = subject.trial(
        "attention-patterns.classify",
        {
            "examples": settings["examples"],
            "checkpoint": "finetuned" if head or subject.has_task_head else "pretrained",
        },
        needs=head,
        inputs={CLASSIFIER: file_input(settings[CLASSIFIER] or SHIPPED)},
        label="classify attention maps",
    )
    return [*head, trial]


def check_pretrained(subject: Subject, settings: Mapping[str, Any]) -> None:
    """Refuse ``--pretrained`` where it would be untrue, or where training is asked for as well."""
    if subject.has_task_head:
        raise RequestError(
            f"--pretrained expects a pre-trained model, and {subject.model} is fine-tuned already",
            "leave it out: the model is looked at as it is",
        )
    options = tuple(option for option in arms.OPTIONS if option != arms.MAX_LENGTH)
    arms.refuse_training_options(settings, options, "with --pretrained nothing is trained")
