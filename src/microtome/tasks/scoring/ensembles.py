"""Ensembles: the probabilities of several models on the same rows, summed.

For questions, a softmax goes over the tokens of all windows of a question together, for start and
end apart; [CLS], the "no answer", is among them. What comes out are logarithms of mean
probabilities: they are read as logits are, and one member, or many equal ones, give back the
member's answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from microtome.errors import RequestError
from microtome.tasks.encoding.windows import Windows
from microtome.tasks.scoring.ranking import scaled
from microtome.tasks.task import Task

FloatArray = NDArray[np.float64]
TINY = 1e-12  # what a probability is away from 0 and 1, so that its logit is a number


def ensemble_logits(task: Task, members: Sequence[NDArray[Any]]) -> FloatArray:
    """(n, labels) of several models as one: log mean probabilities; numbers are averaged.

    Embeddings (n, D) are scaled to length 1 and averaged: members must be of one width.
    """
    stacked = _stacked(members)
    if task.kind == "regression":
        return np.asarray(stacked.mean(axis=0))
    if task.kind in ("similarity", "retrieval"):
        return np.asarray(np.mean([scaled(member, "cosine") for member in stacked], axis=0))
    if task.kind == "multilabel" or stacked.shape[-1] == 1:  # a probability for every output
        mean = np.clip(expit(stacked).mean(axis=0), TINY, 1 - TINY)
        return np.asarray(logit(mean))
    return _mean_of_logs(stacked - _log_total(stacked, axis=-1))


def ensemble_spans(windows: Windows, members: Sequence[NDArray[Any]]) -> FloatArray:
    """Start and end logits (T, 2) of several models as one, flat as the windows' tokens."""
    stacked = _stacked(members)
    if stacked.shape[1:] != (len(windows.ids), 2):
        raise RequestError(
            f"expected two logits for each of {len(windows.ids)} tokens, got {stacked.shape[1:]}"
        )
    # The first token of every question; its windows follow each other.
    first_windows = np.searchsorted(windows.of_row, np.arange(windows.n_rows))
    begins = windows.offsets[first_windows]
    lengths = np.diff(np.append(begins, len(windows.ids)))
    highest = np.repeat(np.maximum.reduceat(stacked, begins, axis=1), lengths, axis=1)
    shifted = stacked - highest
    total = np.add.reduceat(np.exp(shifted), begins, axis=1)  # (members, questions, 2)
    return _mean_of_logs(shifted - np.repeat(np.log(total), lengths, axis=1))


def _stacked(members: Sequence[NDArray[Any]]) -> FloatArray:
    if not members:
        raise RequestError("expected an ensemble of at least one member, got none")
    shapes = {member.shape for member in members}
    if len(shapes) > 1:
        raise RequestError(f"expected members with logits of one shape, got {sorted(shapes)}")
    return np.stack([np.asarray(member, dtype=np.float64) for member in members])


def _log_total(values: FloatArray, axis: int) -> FloatArray:
    highest = values.max(axis=axis, keepdims=True)
    return np.asarray(highest + np.log(np.exp(values - highest).sum(axis=axis, keepdims=True)))


def _mean_of_logs(logs: FloatArray) -> FloatArray:
    """The log of the mean of exp, over the members; no probability is rounded to nothing."""
    return np.asarray(_log_total(logs, axis=0)[0] - np.log(len(logs)))
