"""The masked-LM forward pass, the loss to train on, and what a model knows of held-out text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from microtome.edits import Reinit
from microtome.families import adapt
from microtome.families.seam import Family
from microtome.observe.decoding import decode
from microtome.observe.packing import Chunk, Group
from microtome.observe.products import FastProducts
from microtome.observe.texts import Texts
from microtome.observe.vocabulary import Vocabulary
from microtome.training.finetune.forward import layer
from microtome.training.mlm.rows import Array, Batch, Tokens, make_batch


def masked_states(family: Family, batch: Batch) -> Tensor:
    """The final states at the masked positions: (B·K, D), row by row."""
    chunk = chunk_of(batch)
    states = family.embed(chunk.ids, chunk.positions, chunk.segments)  # (B·L, D)
    for index in range(family.shape.n_layers):
        states = layer(family, index, states, chunk)
    n_rows, length = batch.ids.shape
    masked = torch.from_numpy(batch.positions + length * np.arange(n_rows)[:, None])
    return family.final_norm(states[masked.flatten()])


def masked_loss(family: Family, batch: Batch) -> Tensor:
    """Mean cross-entropy of the masked tokens."""
    logits = family.mlm_decoder()(family.mlm_features(masked_states(family, batch)))
    return torch.nn.functional.cross_entropy(logits, batch.targets)


def chunk_of(batch: Batch) -> Chunk:
    """The rows as the families' forward pass takes them: side by side, one group of one length."""
    n_rows, length = batch.ids.shape
    positions = np.arange(length) + batch.starts[:, None]
    return Chunk(
        ids=torch.from_numpy(batch.ids.ravel()),
        positions=torch.from_numpy(positions.ravel()),
        segments=torch.from_numpy(batch.segments.ravel()),
        groups=(Group(0, n_rows, length),),
        texts=np.arange(n_rows),
        tokens=np.arange(n_rows * length),
    )


MASKED = 0.15
MASKS_SEED = 15
ALL_HIDDEN, MIXED = (1.0, 0.0), (0.8, 0.1)  # shares of [MASK] and of random tokens
ROWS_AT_ONCE = 32


@dataclass(frozen=True)
class HeldoutScores:
    """Scores at masked positions (15 % of the tokens), and what guessing one token gives."""

    loss: float
    accuracy: float  # every masked token is shown as [MASK]
    accuracy_mixed: float  # 80 % [MASK], 10 % random, 10 % shown, as in training
    unigram: float  # always guess the commonest training token
    n: int


@FastProducts()
@torch.no_grad()
def heldout_scores(
    model: PreTrainedModel,
    rows: Array,
    *,
    tokens: Tokens,
    common: int,
    head: Callable[[Tensor], Tensor] | None = None,
) -> HeldoutScores:
    """Score held-out rows, always with the same masks.

    ``head`` turns final states (n, D) into logits (n, V); the model's own unless given.
    """
    family = adapt(model)
    read = head or (lambda states: family.mlm_decoder()(family.mlm_features(states)))
    totals = []
    for shares in (ALL_HIDDEN, MIXED):
        random = np.random.default_rng(MASKS_SEED)
        batch = make_batch(rows, rate=MASKED, pairs=0, tokens=tokens, random=random, shares=shares)
        loss, right = 0.0, 0
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            part = batch.part(slice(begin, begin + ROWS_AT_ONCE))
            logits = read(masked_states(family, part))
            loss += float(torch.nn.functional.cross_entropy(logits, part.targets, reduction="sum"))
            right += int((logits.argmax(1) == part.targets).sum())
        totals.append((loss / batch.labels.size, right / batch.labels.size))
    (loss, accuracy), (_, mixed) = totals
    unigram = float((batch.labels == common).mean())
    return HeldoutScores(loss, accuracy, mixed, unigram, batch.labels.size)


def decoding_curve(model: PreTrainedModel, rows: Array, *, tokens: Tokens) -> tuple[float, ...]:
    """The share of ordinary tokens that the MLM head reads back, at depth 0, 1, …, N; no masks."""
    vocabulary = Vocabulary.of([""] * tokens.n_vocabulary, range(tokens.first_ordinary))
    return tuple(decode(model, Texts.of(rows.tolist()), vocabulary).accuracy().tolist())


def random_blocks(model: PreTrainedModel) -> PreTrainedModel:
    """The control: the same embeddings and head around layers with fresh weights."""
    return Reinit(top=adapt(model).shape.n_layers, seed=0, parts="all")(model)
