"""How fast one model is beside another: plain forward passes on the same texts, by turns."""

from __future__ import annotations

import time
from statistics import median

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from microtome.observe.texts import Encoded

SAMPLE = 64  # texts
BATCH = 16
TURNS = 5

Batch = dict[str, Tensor]


def relative_speed(model: PreTrainedModel, base: PreTrainedModel, texts: Encoded) -> float:
    """Tokens per second of ``model`` over those of ``base``; the median of several turns.

    Both run as plain transformers run them, padded batch by padded batch, because that is how an
    edited checkpoint is used elsewhere. They take turns, so that whatever else the machine does
    hits both alike. It is a measurement: the second digit is noise.
    """
    batches = padded_batches(texts, base)
    ratios = []
    for turn in range(TURNS + 1):
        ours, theirs = _seconds(model, batches), _seconds(base, batches)
        if turn:  # the first one warms up
            ratios.append(theirs / ours)
    return float(median(ratios))


def padded_batches(texts: Encoded, model: PreTrainedModel) -> list[Batch]:
    """The first texts, sorted by length, as plain transformers takes them."""
    offsets = np.asarray(texts.offsets[: SAMPLE + 1], dtype=np.int64)
    order = np.argsort(np.diff(offsets), kind="stable")
    batches = []
    for start in range(0, len(order), BATCH):
        rows = [texts.ids[offsets[i] : offsets[i + 1]] for i in order[start : start + BATCH]]
        ids = np.full((len(rows), max(map(len, rows))), model.config.pad_token_id or 0)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = row
        lengths = torch.tensor([len(row) for row in rows])
        mask = torch.arange(ids.shape[1]) < lengths[:, None]
        given = {"input_ids": torch.from_numpy(ids), "attention_mask": mask.long()}
        batches.append({name: value.to(model.device) for name, value in given.items()})
    return batches


@torch.no_grad()
def _seconds(model: PreTrainedModel, batches: list[Batch]) -> float:
    started = time.perf_counter()
    for batch in batches:
        model(**batch)
    return time.perf_counter() - started
