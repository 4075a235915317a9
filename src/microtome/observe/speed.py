"""How fast one model is beside another: the same texts, by turns, on the same machine."""

from __future__ import annotations

import time
from statistics import median

import numpy as np
from transformers import PreTrainedModel

from microtome.observe.predicting import predict
from microtome.observe.texts import Encoded, Texts

SAMPLE = 64  # texts
TURNS = 5


def relative_speed(model: PreTrainedModel, base: PreTrainedModel, texts: Encoded) -> float:
    """Tokens per second of ``model`` over those of ``base``; the median of several turns.

    The two take turns, so that whatever else the machine does hits both alike. It is a measurement:
    the second digit is noise.
    """
    sample = first_texts(texts, SAMPLE)
    ratios = []
    for turn in range(TURNS + 1):
        seconds = {id(one): _seconds(one, sample) for one in (model, base)}
        if turn:  # the first one warms up
            ratios.append(seconds[id(base)] / seconds[id(model)])
    return float(median(ratios))


def first_texts(texts: Encoded, n_texts: int) -> Texts:
    """The first texts of a data set."""
    offsets = np.asarray(texts.offsets[: n_texts + 1], dtype=np.int64)
    end = int(offsets[-1])
    segments = None if texts.segments is None else texts.segments[:end]
    return Texts(texts.ids[:end], offsets, segments, texts.special[:end])


def _seconds(model: PreTrainedModel, texts: Texts) -> float:
    started = time.perf_counter()
    predict(model, texts)
    return time.perf_counter() - started
