"""What a model's output is worth by every official metric, ready to be paired with another's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from microtome.tasks import Dataset, Encoded, Windows
from microtome.tasks.encoding.masking import MaskedTexts
from microtome.tasks.encoding.tagged import TaggedTexts
from microtome.tasks.scoring.answered import (
    Outcome,
    answered_embeddings,
    answered_labels,
    answered_tags,
)
from microtome.tasks.scoring.evaluation import answer_scores, answers_of
from microtome.tasks.scoring.masked_tokens import MASKED_ACCURACY, masked_accuracy


def outcomes(
    model: PreTrainedModel, dataset: Dataset, encoded: Encoded, output: NDArray[Any]
) -> Mapping[str, Outcome]:
    """Every metric of the task, the primary first, from what ``model`` or an edited copy put out.

    A score for every row where the metric is their mean (accuracy, and both of SQuAD's); else the
    metric as a function of row weights. There are no intervals: a sweep over 144 heads compares its
    outcomes with the baseline's, and would compute 144 intervals in vain.
    """
    if isinstance(encoded, Windows):
        answers = answers_of(dataset, encoded, output[:, 0], output[:, 1])
        scores = answer_scores(dataset, answers)
        return {name: scores[name] for name in dataset.task.metrics}
    if isinstance(encoded, MaskedTexts):
        return {MASKED_ACCURACY: masked_accuracy(dataset, np.asarray(output, dtype=np.float64))}
    if isinstance(encoded, TaggedTexts):
        return answered_tags(dataset, encoded, output, model.config.id2label).outcomes
    if dataset.task.kind in ("similarity", "retrieval"):
        return answered_embeddings(dataset, output).outcomes
    return answered_labels(dataset, output, model.config.id2label).outcomes
