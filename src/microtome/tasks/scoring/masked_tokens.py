"""Scores of a masked LM: how many hidden tokens it restores, and how surprised it is by them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.errors import RequestError, RunError
from microtome.statistics import SumMetric, bootstrap, share
from microtome.tasks.dataset import Dataset
from microtome.tasks.encoding.masking import SHOWN, MaskedTexts
from microtome.tasks.scoring.evaluation import Evaluation

MASKED_ACCURACY = "masked_accuracy"
COLUMNS = ("n_masked", "n_right", "loss", "lowest_guess", "highest_guess")
"""What is known of every text: sums over its masked tokens, and the range of the guessed ids."""


def evaluate_masked(dataset: Dataset, answers: NDArray[Any]) -> Evaluation:
    """Scores of one line of ``COLUMNS`` per text. The interval is over texts, not over tokens."""
    answers = np.asarray(answers, dtype=np.float64)
    metric = masked_accuracy(dataset, answers)
    n_masked, loss = int(answers[:, 0].sum()), float(answers[:, 2].sum() / answers[:, 0].sum())
    note = (
        f"{n_masked:,} masked tokens in {len(dataset):,} texts; loss {loss:.3f} nats per token"
        f" (perplexity {np.exp(loss):,.1f})"
    )
    scores = {MASKED_ACCURACY: bootstrap(metric, clusters=dataset.clusters)}
    return Evaluation(
        dataset.task.name, dataset.split, MASKED_ACCURACY, scores, (*dataset.notes, note), answers,
        {MASKED_ACCURACY: metric}, loss=loss,
    )  # fmt: skip


def masked_accuracy(dataset: Dataset, answers: NDArray[Any]) -> SumMetric:
    """The share of masked tokens that are restored, as a function of the texts' weights."""
    if answers.shape != (len(dataset), len(COLUMNS)):
        expected = (len(dataset), len(COLUMNS))
        raise RequestError(f"expected answers of shape {expected}, got {answers.shape}")
    if not np.isfinite(answers).all():
        raise RunError("the model's output isn't a number for some masked tokens")
    if not answers[:, 0].sum():
        raise RunError(f"{dataset.task.name} has no token that could be masked")
    return share(answers[:, 1], answers[:, 0])


def commonest_share(encoded: MaskedTexts) -> float:
    """What the best constant guess restores: the commonest of the hidden tokens."""
    hidden = encoded.targets[encoded.targets != SHOWN]
    return float(np.unique(hidden, return_counts=True)[1].max() / len(hidden))


def guesses_one_token(answers: NDArray[Any]) -> bool:
    """Whether every masked token is guessed to be the same."""
    guessed = answers[answers[:, 0] > 0]
    return bool(guessed[:, 3].min() == guessed[:, 4].max())
