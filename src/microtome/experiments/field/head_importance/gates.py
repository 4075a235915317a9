"""Gates of 1 on heads and layers, one per text: one backward pass gives every text's gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from microtome.errors import RequestError
from microtome.families.seam import Family
from microtome.observe.forward import bound, check_head, read, text_of_rows
from microtome.observe.packing import Chunk, packed
from microtome.observe.texts import IntArray, fitted
from microtome.tasks import Dataset, Encoded, label_map
from microtome.tasks.encoding.masking import MaskedTexts
from microtome.training.finetune.examples import Examples, examples_of
from microtome.training.finetune.forward import attend
from microtome.training.finetune.losses import pair_loss, summed_loss

TOKENS_IN_FLIGHT = 1600
PAIRS_TOGETHER = 32  # of a loss that compares the pairs of a batch
MASKED_LOSS = 2  # the column of a masked LM's answers: see ``tasks.scoring.masked_tokens.COLUMNS``
PERMUTED = ("classification", "multilabel")  # a head may have the task's labels in another order
FloatArray = NDArray[np.float64]
Loss = Callable[[Tensor, Chunk], Tensor]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Gates:
    """Ones that are multiplied to what heads and layers do, for every text of a chunk."""

    heads: Tensor  # (n, layers, heads)
    layers: Tensor  # (n, layers)

    @classmethod
    def of(cls, family: Family, n_texts: int) -> Gates:
        """All open."""
        shape, weights = family.shape, family.word_embeddings
        size = (n_texts, shape.n_layers, shape.n_heads)
        heads, layers = weights.new_ones(size), weights.new_ones(size[:2])
        return cls(heads.requires_grad_(), layers.requires_grad_())


def gated_outputs(family: Family, chunk: Chunk, gates: Gates) -> Tensor:
    """What the head gives, as ``observe.predict`` has it, through the gates."""
    text = text_of_rows(chunk)
    states = family.embed(chunk.ids, chunk.positions, chunk.segments)  # (T, D)
    for index in range(family.shape.n_layers):
        query, key, value = family.project(index, states, chunk.positions)
        context = attend(family, index, query, key, value, chunk.groups)  # (T, H·Dh)
        by_head = context.view(len(context), family.shape.n_heads, -1)
        gated = (by_head * gates.heads[text, index, :, None]).flatten(-2)
        reached = family.feed_forward(index, family.attention_output(index, states, gated))
        states = states + gates.layers[text, index, None] * (reached - states)
    return read(family, states, chunk)


def gate_gradients(
    model: PreTrainedModel, dataset: Dataset, encoded: Encoded, progress: Progress | None = None
) -> tuple[FloatArray, FloatArray]:
    """|∂ loss / ∂ gate| of every head (n, layers, heads) and every layer (n, layers), by text.

    The loss of a text is the one that fine-tuning has, summed over its words or masked tokens; n
    counts encoded texts (windows of questions), or pairs where the pairs of a batch are compared:
    there the loss is the batch's, of 32 pairs.
    """
    family = bound(model)
    check_head(family, encoded)
    found: tuple[FloatArray, FloatArray] | None = None
    n_done = 0
    for rows, gradients in _gradients(family, dataset, encoded):
        if found is None:
            n = len(dataset) if dataset.task.kind == "similarity" else len(encoded)
            found = tuple(np.full((n, *part.shape[1:]), np.nan) for part in gradients)  # type: ignore[assignment]
        assert found is not None
        for kept, part in zip(found, gradients, strict=True):
            kept[rows] = part.abs().double().cpu().numpy()
        n_done += len(rows)
        if progress is not None:
            progress(n_done, len(found[0]))
    assert found is not None  # fitted() refuses an empty data set
    return found


def _gradients(
    family: Family, dataset: Dataset, encoded: Encoded
) -> Iterator[tuple[IntArray, list[Tensor]]]:
    """Which texts (or pairs), and the gradients at their gates, chunk by chunk."""
    if dataset.task.kind == "similarity":
        yield from _of_pairs(family, examples_of(dataset, encoded, family))
        return
    loss = _loss(family, dataset, encoded)
    texts = fitted(encoded, family.n_positions)
    device = family.model.device
    for chunk in packed(texts, tokens_in_flight=TOKENS_IN_FLIGHT, device=device):
        gates = Gates.of(family, len(chunk.texts))
        total = loss(gated_outputs(family, chunk, gates), chunk)
        # Asked for by name: nothing is computed for the weights.
        yield chunk.texts, list(torch.autograd.grad(total, [gates.heads, gates.layers]))


def _loss(family: Family, dataset: Dataset, encoded: Encoded) -> Loss:
    """The loss of a chunk's outputs, summed over its texts."""
    if isinstance(encoded, MaskedTexts):
        return lambda outputs, chunk: outputs[:, MASKED_LOSS].sum()
    examples = examples_of(dataset, encoded, family)
    kind, order = dataset.task.kind, None
    if kind in PERMUTED:
        config = family.model.config
        order = list(label_map(dataset.task, config.id2label, config.num_labels)[0])

    def loss(outputs: Tensor, chunk: Chunk) -> Tensor:
        places = torch.from_numpy(chunk.tokens if kind == "tokens" else chunk.texts)
        targets = examples.targets[places].to(outputs.device)
        return summed_loss(kind, outputs if order is None else outputs[:, order], targets, chunk)

    return loss


def _of_pairs(family: Family, examples: Examples) -> Iterator[tuple[IntArray, list[Tensor]]]:
    """Of pairs with a number: a gate of a pair is shared by its two texts."""
    if family.embedder is None:
        raise RequestError("a loss of pairs asked for, but the model is no embedder")
    order = np.random.default_rng(0).permutation(len(examples))
    n_batches = max(1, round(len(order) / PAIRS_TOGETHER))
    for rows in np.array_split(order, n_batches):
        chunk = examples.pair_batch(rows, family.model.device)
        pair_of = torch.from_numpy(chunk.texts % len(rows))  # first texts, then second ones
        gates = Gates.of(family, len(rows))
        by_text = Gates(gates.heads[pair_of], gates.layers[pair_of])
        outputs = gated_outputs(family, chunk, by_text)[np.argsort(chunk.texts)]
        embeddings = outputs.view(2, len(rows), -1)
        total = pair_loss(family.embedder, examples.kind, embeddings, examples.pair_targets(rows))
        yield rows, list(torch.autograd.grad(total, [gates.heads, gates.layers]))
