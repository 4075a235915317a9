"""What a model knows of text it never saw: masked accuracy, and the decoding curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from microtome.edits import Reinit
from microtome.families import adapt
from microtome.families.seam import Family
from microtome.training.pretraining.forward import every_depth, masked_features
from microtome.training.pretraining.rows import Array, Batch, Tokens, make_batch

RATE = 0.15
ROWS_AT_ONCE = 64


@dataclass(frozen=True)
class Heldout:
    """Scores at masked positions (15 % of the tokens), beside always guessing one token."""

    loss: float
    accuracy: float  # every asked-for token is hidden behind [MASK]
    accuracy_mixed: float  # 80 % [MASK], 10 % random, 10 % shown, as in training
    unigram: float  # always guess the commonest training token
    n: int


def heldout_scores(model: PreTrainedModel, rows: Array, *, tokens: Tokens, common: int) -> Heldout:
    """Score the model on held-out rows; the masks are always the same."""
    family = adapt(model)
    hidden = make_batch(rows, rate=RATE, pairs=0, tokens=tokens, random=_masks(), shares=(1.0, 0.0))
    mixed = make_batch(rows, rate=RATE, pairs=0, tokens=tokens, random=_masks())
    loss, accuracy = _score(family, hidden)
    _, accuracy_mixed = _score(family, mixed)
    unigram = float((hidden.labels == common).mean())
    return Heldout(loss, accuracy, accuracy_mixed, unigram, hidden.labels.size)


def _masks() -> np.random.Generator:
    return np.random.default_rng(15)


@torch.no_grad()
def _score(family: Family, batch: Batch) -> tuple[float, float]:
    decoder = family.mlm_decoder()
    loss, right = 0.0, 0
    for begin in range(0, len(batch.ids), ROWS_AT_ONCE):
        part = batch.part(slice(begin, begin + ROWS_AT_ONCE))
        logits = decoder(masked_features(family, part)).flatten(0, 1)
        labels = torch.from_numpy(part.labels).reshape(-1)
        loss += float(torch.nn.functional.cross_entropy(logits, labels, reduction="sum"))
        right += int((logits.argmax(1) == labels).sum())
    return loss / batch.labels.size, right / batch.labels.size


@torch.no_grad()
def decoding_curve(model: PreTrainedModel, rows: Array, *, tokens: Tokens) -> tuple[float, ...]:
    """The share of ordinary tokens that the MLM head reads back, at depth 0, 1, …, N; no masks."""
    family = adapt(model)
    ordinary = torch.from_numpy(rows >= tokens.first_ordinary)
    right = torch.zeros(family.shape.n_layers + 1)
    for begin in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[begin : begin + ROWS_AT_ONCE]
        keep = ordinary[begin : begin + ROWS_AT_ONCE]
        batch = Batch(part, np.zeros_like(part), part[:, :0], part[:, :0])
        labels = torch.from_numpy(part)[keep]
        for depth, states in enumerate(every_depth(family, batch)):
            right[depth] += (_decoded(family, states[keep]) == labels).sum()
    return tuple((right / int(ordinary.sum())).tolist())


def _decoded(family: Family, states: Tensor) -> Tensor:
    decoder, features = family.mlm_decoder(), family.mlm_features(family.final_norm(states))
    return torch.cat([decoder(chunk).argmax(1) for chunk in torch.split(features, 512)])


def random_blocks(model: PreTrainedModel) -> PreTrainedModel:
    """The control: the same embeddings and head around blocks with fresh weights."""
    return Reinit(top=adapt(model).shape.n_layers, seed=0, parts="all")(model)
