"""How far a cut model's answers are from its base's, for each way of answering.

Summed over rows (or tokens, or labels of rows); the caller divides by their number.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from microtome.families.head_kinds import head_of, is_embedder
from microtome.families.seam import Family
from microtome.observe.packing import Chunk
from microtome.tasks.task import Kind

Answer = Literal["choice", "labels", "number", "tags", "span", "embedding", "hidden token"]
"""One of several outputs; each output by itself; a number; one of several for every token; the
first and last token of an answer; a vector; a token of the vocabulary behind [MASK]."""

BY_TOKEN: tuple[Answer, ...] = ("tags", "span")
TEMPERATURE = 2.0
"""Softens both sides of a choice, so that the outputs that weren't chosen count, too."""


def answer_of(family: Family, kind: Kind) -> Answer:
    """How a model with this head answers rows of this kind."""
    if is_embedder(family.model):
        return "embedding"
    head, config = head_of(family.model), family.model.config
    if head == "question-answering":
        return "span"
    if head == "token-classification":
        return "tags"
    if head == "mlm":
        return "hidden token"
    if config.problem_type == "multi_label_classification":
        return "labels"
    if config.num_labels == 1:
        return "labels" if kind == "reranking" else "number"
    return "choice"


def distance(answer: Answer, outputs: Tensor, base: Tensor, chunk: Chunk) -> Tensor:
    """How far ``outputs`` are from those of the base, which aren't differentiated; summed."""
    outputs, base = outputs.float(), base.float()
    if answer == "number":
        return functional.mse_loss(outputs, base, reduction="sum")
    if answer == "labels":
        return functional.binary_cross_entropy_with_logits(outputs, base.sigmoid(), reduction="sum")
    if answer == "embedding":
        return embedding_distance(outputs, base)
    if answer == "span":
        return _span_divergence(outputs, base, chunk)
    return divergence(outputs, base)


def divergence(outputs: Tensor, base: Tensor) -> Tensor:
    """KL divergence of softened choices (n, labels), summed; comparable at any temperature."""
    ours = functional.log_softmax(outputs / TEMPERATURE, -1)
    theirs = functional.log_softmax(base / TEMPERATURE, -1)
    return TEMPERATURE**2 * functional.kl_div(ours, theirs, reduction="sum", log_target=True)


def embedding_distance(outputs: Tensor, base: Tensor) -> Tensor:
    """How far embeddings (n, D) are from the base's, and their similarities from the base's.

    Where an embedding points (1 − cosine), and how similar it is to the others of its batch: a
    search compares texts with each other, and never with what the base would have made of them.
    """
    ours, theirs = functional.normalize(outputs, dim=-1), functional.normalize(base, dim=-1)
    turned = (1 - (ours * theirs).sum(-1)).sum()
    apart = (ours @ ours.T - theirs @ theirs.T).square().mean(-1).sum()
    return turned + apart


def _span_divergence(outputs: Tensor, base: Tensor, chunk: Chunk) -> Tensor:
    """Over the tokens of each window, the mean of start and end (T, 2)."""
    sizes = [group.n_texts * group.length for group in chunk.groups]
    parts = zip(chunk.groups, torch.split(outputs, sizes), torch.split(base, sizes), strict=True)
    by_window = (
        [side.view(group.n_texts, group.length, 2).transpose(1, 2).flatten(0, 1) for side in sides]
        for group, *sides in parts
    )
    return torch.stack([divergence(ours, theirs) / 2 for ours, theirs in by_window]).sum()
