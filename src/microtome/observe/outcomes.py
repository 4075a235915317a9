"""What a model's output is worth by every official metric, ready to be paired with another's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from microtome.statistics import Metric
from microtome.tasks import Dataset, Encoded, Windows, metric_of
from microtome.tasks.encoding.masking import MaskedTexts
from microtome.tasks.scoring.evaluation import answer_scores, answers_of, predictions_of
from microtome.tasks.scoring.masked_tokens import MASKED_ACCURACY, masked_accuracy


def outcomes(
    model: PreTrainedModel, dataset: Dataset, encoded: Encoded, logits: NDArray[Any]
) -> dict[str, NDArray[np.float64] | Metric]:
    """Every metric of the task, the primary first, from what ``model`` or an edited copy put out.

    A score for every row where the metric is their mean (accuracy, and both of SQuAD's); else the
    metric as a function of row weights. There are no intervals: a sweep over 144 heads compares its
    outcomes with the baseline's, and would compute 144 intervals in vain.
    """
    task = dataset.task
    if isinstance(encoded, Windows):
        answers = answers_of(dataset, encoded, logits[:, 0], logits[:, 1])
        scores = answer_scores(dataset, answers)
        return {name: scores[name] for name in task.metrics}
    if isinstance(encoded, MaskedTexts):
        return {MASKED_ACCURACY: masked_accuracy(dataset, np.asarray(logits, dtype=np.float64))}
    predicted, _ = predictions_of(dataset, logits, model.config.id2label)
    right = np.asarray(predicted == dataset.targets, dtype=np.float64)
    return {
        name: right if name == "accuracy" else metric_of(name, predicted, dataset.targets, task)
        for name in task.metrics
    }
