"""How fast one model is compared with another: plain forward passes on the same texts, by turns.

Both run as plain transformers run them, padded, because that is how an edited checkpoint is used
elsewhere. They take turns in short slices, so that whatever else the machine does hits both alike.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median, quantiles

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from microtome.observe.texts import Encoded

BATCH = 8
SINGLE_TURNS, BATCH_TURNS = 15, 5
ATTEMPTS = 3
# A model with fewer layers that seems slower, or faster than its layers explain, was disturbed.
SLOWEST, FASTEST = 0.97, 1.35

Batch = dict[str, Tensor]


@dataclass(frozen=True)
class Timing:
    """A model timed by turns with its base; seconds are medians of the turns.

    ``speed`` is that of batches relative to the base's, with its quartiles over turns; all three
    are None where the machine was too busy to tell.
    """

    speed: float | None
    speed_low: float | None
    speed_high: float | None
    latency_ms: float  # one text
    base_latency_ms: float
    batch_ms: float  # 8 texts
    base_batch_ms: float


def time_against(
    model: PreTrainedModel, base: PreTrainedModel, texts: Encoded, *, share: float
) -> Timing:
    """Time ``model`` and ``base`` on the same texts.

    ``share`` is the part of the base's layers that the model has: a ratio that it can't explain is
    measured again, and given up after three attempts.
    """
    singles, batch = padded(texts, base, n_texts=SINGLE_TURNS, size=1), padded(texts, base)
    for _ in range(ATTEMPTS):
        timing = _timed(model, base, singles, batch)
        if timing.speed is not None and SLOWEST <= timing.speed <= FASTEST / share:
            return timing
    return replace(timing, speed=None, speed_low=None, speed_high=None)


def _timed(
    model: PreTrainedModel, base: PreTrainedModel, singles: list[Batch], batch: list[Batch]
) -> Timing:
    one = seconds_by_turns([(model, singles), (base, singles)], SINGLE_TURNS)
    many = seconds_by_turns([(model, batch), (base, batch)], BATCH_TURNS)
    low, speed, high = quantiles([theirs / ours for ours, theirs in many], n=4)
    milliseconds = (
        1000 * median(turn[side] for turn in turns) for turns in (one, many) for side in (0, 1)
    )
    return Timing(speed, low, high, *milliseconds)


def seconds_by_turns(
    sides: Sequence[tuple[PreTrainedModel, Sequence[Batch]]], n_turns: int
) -> list[list[float]]:
    """Seconds of every model, turn by turn, each on batches in its tokens.

    The first turn warms up and doesn't count; another model begins each time.
    """
    turns = []
    for turn in range(n_turns + 1):
        first = (turn + 1) % len(sides)
        seconds = [0.0] * len(sides)
        for place in (*range(first, len(sides)), *range(first)):
            model, batches = sides[place]
            seconds[place] = _seconds(model, batches[turn % len(batches)])
        if turn:
            turns.append(seconds)
    return turns


def padded(
    texts: Encoded, model: PreTrainedModel, *, n_texts: int = BATCH, size: int = BATCH
) -> list[Batch]:
    """The first ``n_texts`` texts in batches of ``size``, as plain transformers takes them."""
    offsets = np.asarray(texts.offsets[: n_texts + 1], dtype=np.int64)
    batches = []
    for start in range(0, len(offsets) - 1, size):
        places = range(start, min(start + size, len(offsets) - 1))
        rows = [texts.ids[offsets[i] : offsets[i + 1]] for i in places]
        ids = np.full((len(rows), max(map(len, rows))), model.config.pad_token_id or 0)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = row
        lengths = torch.tensor([len(row) for row in rows])
        mask = torch.arange(ids.shape[1]) < lengths[:, None]
        given = {"input_ids": torch.from_numpy(ids), "attention_mask": mask.long()}
        batches.append({name: value.to(model.device) for name, value in given.items()})
    return batches


@torch.no_grad()
def _seconds(model: PreTrainedModel, batch: Batch) -> float:
    started = time.perf_counter()
    model(**batch)
    return time.perf_counter() - started
