"""What a training makes small, for each kind of data.

Losses of single rows are summed, and the caller divides by what the effective batch has
(``Examples.n_terms``). A loss of pairs compares all pairs of a batch, so it comes whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from microtome.families.embedder import Embedder
from microtome.observe.packing import Chunk
from microtome.observe.texts import IntArray
from microtome.tasks.task import Kind

UNLABELLED = -1
"""The target of a token that no word is read at: special tokens, a word's further pieces."""

SHARPNESS = 20.0
"""What cosines are multiplied by before a softmax, as sentence-transformers does."""

OnBatch = Callable[[IntArray], Tensor]
OnEmbeddings = Callable[[Tensor], Tensor]


def summed_loss(kind: Kind, logits: Tensor, targets: Tensor, chunk: Chunk) -> Tensor:
    """The loss summed over rows (tokens: over labelled tokens; multilabel: rows and labels).

    Numbers: squared error. Several labels, and relevance as one logit: binary cross-entropy. Spans:
    the mean of the start's and the end's cross-entropy. All others: cross-entropy.
    """
    logits = logits.float()  # half-precision losses lose what small gradients need
    if kind == "regression":
        return functional.mse_loss(logits[:, 0], targets.float(), reduction="sum")
    if kind == "spans":
        return _span_loss(logits, targets, chunk)
    if kind == "multilabel" or (kind == "reranking" and logits.shape[1] == 1):
        return functional.binary_cross_entropy_with_logits(
            logits, targets.float().view_as(logits), reduction="sum"
        )
    return functional.cross_entropy(logits, targets, ignore_index=UNLABELLED, reduction="sum")


def _span_loss(logits: Tensor, targets: Tensor, chunk: Chunk) -> Tensor:
    """Over the tokens of each window; transformers lets the softmax run over padding, too."""
    losses, before = [], 0
    parts = torch.split(logits, [group.n_texts * group.length for group in chunk.groups])
    for group, part in zip(chunk.groups, parts, strict=True):
        by_text = part.view(group.n_texts, group.length, 2).transpose(1, 2)  # (n, 2, L)
        places = targets[before : before + group.n_texts]  # (n, 2)
        losses.append(
            functional.cross_entropy(by_text.flatten(0, 1), places.flatten(), reduction="sum") / 2
        )
        before += group.n_texts
    return torch.stack(losses).sum()


def pair_loss(embedder: Embedder, kind: Kind, embeddings: Tensor, targets: Tensor) -> Tensor:
    """The loss of a batch of pairs (2, n, D), by what ``Examples.pair_targets`` gives."""
    if kind == "retrieval":
        return contrastive_loss(embeddings, targets, by_cosine=embedder.similarity != "dot")
    return order_loss(embeddings, targets)


def contrastive_loss(embeddings: Tensor, compared: Tensor, *, by_cosine: bool = True) -> Tensor:
    """How badly queries tell their own document from the batch's others; (2, n, D).

    The mean cross-entropy of each query's own document among those it is ``compared`` with (n, n):
    its own and those that aren't relevant to it.
    """
    queries, documents = _unit(embeddings) if by_cosine else embeddings.float()
    scores = (SHARPNESS if by_cosine else 1.0) * queries @ documents.T
    scores = scores.masked_fill(~compared, -torch.inf)
    return functional.cross_entropy(scores, torch.arange(len(scores), device=scores.device))


def order_loss(embeddings: Tensor, gold: Tensor) -> Tensor:
    """How badly the cosines of pairs (2, n, D) are in the order of their gold numbers (n,).

    log(1 + Σ exp(20 · (cos i − cos j))) over pairs i, j with gold i < gold j (CoSENT). A squared
    error would need the numbers on the scale of cosines, which own data doesn't tell, and would
    first move the scale of the model's cosines; the score is Spearman's, which has none.
    """
    first, second = _unit(embeddings)
    cosines = SHARPNESS * (first * second).sum(-1)
    differences = cosines[:, None] - cosines[None, :]
    wrong = differences[gold[:, None] < gold[None, :]]
    return torch.logsumexp(torch.cat([wrong.new_zeros(1), wrong]), 0)


def _unit(embeddings: Tensor) -> Tensor:
    return functional.normalize(embeddings.float(), dim=-1)


def backward_by_parts(embed: OnBatch, parts: Sequence[IntArray], loss_of: OnEmbeddings) -> float:
    """Gradients of a loss that compares all pairs, with one part of them in memory at a time.

    Every part is embedded, the loss is differentiated by the embeddings, and every part is embedded
    once more to pass that on (Gao et al. 2021). ``embed`` must repeat its dropout: (2, n, D).
    """
    if len(parts) == 1:
        loss = loss_of(embed(parts[0]))
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())
    with torch.no_grad():
        embeddings = torch.cat([embed(part) for part in parts], dim=1)
    embeddings.requires_grad_()
    loss = loss_of(embeddings)
    loss.backward()  # type: ignore[no-untyped-call]
    assert embeddings.grad is not None
    gradients = torch.split(embeddings.grad, [len(part) for part in parts], dim=1)
    for part, gradient in zip(parts, gradients, strict=True):
        embed(part).backward(gradient)  # type: ignore[no-untyped-call]
    return float(loss.detach())
