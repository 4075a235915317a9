"""Predictions with the layers in other orders: cuts, copies, moves; shared beginnings once.

A depth edit is an order of layers, so no edited model is needed: the layers of the model run in
that order. Orders that begin alike share their first layers, which are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from microtome.errors import RequestError
from microtome.families.seam import Family
from microtome.observe import forward
from microtome.observe.packing import TOKENS_IN_FLIGHT, Chunk, packed
from microtome.observe.products import FastProducts
from microtome.observe.texts import Encoded, fitted

FloatArray = NDArray[np.float32]


@dataclass
class _Branch:
    """What follows a common beginning: the next layers, and the orders that end here."""

    ends: list[int] = field(default_factory=list)
    following: dict[int, _Branch] = field(default_factory=dict)

    @classmethod
    def of(cls, orders: Sequence[Sequence[int]]) -> _Branch:
        root = cls()
        for place, order in enumerate(orders):
            branch = root
            for layer in order:
                branch = branch.following.setdefault(layer, cls())
            branch.ends.append(place)
        return root


@FastProducts()
@torch.inference_mode()
def predict_orders(
    model: PreTrainedModel,
    texts: Encoded,
    orders: Sequence[Sequence[int]],
    *,
    tokens_in_flight: int = TOKENS_IN_FLIGHT,
    progress: Callable[[int, int], None] | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> FloatArray:
    """What ``predict`` gives, under each order of layers: (orders, n, labels), (orders, T, 2), ….

    An order names the layer at every position: ``(0, 1, 3)`` of a model with four layers is
    ``remove(2)``. ``progress`` is told (texts done, texts).

        predict_orders(model, texts, [(0, 1, 2, 3), (0, 1, 3)])
    """
    family = forward.bound(model, device=device, dtype=dtype)
    forward.check_head(family, texts)
    n_layers = family.shape.n_layers
    for order in orders:
        if not order or not all(0 <= layer < n_layers for layer in order):
            raise RequestError(f"expected orders of layers 0 to {n_layers - 1}, got {tuple(order)}")
    root, kept_texts = _Branch.of(orders), fitted(texts, family.n_positions)
    by_token = family.by_token
    logits: FloatArray | None = None
    n_done = 0
    for chunk in packed(kept_texts, tokens_in_flight=tokens_in_flight, device=family.model.device):
        rows = kept_texts.source_of(chunk.tokens) if by_token else chunk.texts
        for place, answers in _answers(family, root, forward.embedded(family, chunk), chunk):
            numbers = answers.float().cpu().numpy()
            if logits is None:
                n_rows = len(texts.ids) if by_token else len(kept_texts)
                shape = (len(orders), n_rows, numbers.shape[1])
                logits = np.full(shape, -np.inf, dtype=np.float32)
            logits[place, rows] = numbers
        n_done += len(chunk.texts)
        if progress is not None:
            progress(n_done, len(kept_texts))
    assert logits is not None  # fitted() refuses an empty data set
    return logits


def _answers(
    family: Family, branch: _Branch, states: Tensor, chunk: Chunk
) -> Iterator[tuple[int, Tensor]]:
    """(place of the order, its logits) for all orders of a branch that starts with ``states``."""
    for layer, after in branch.following.items():
        if after.ends and not after.following and family.reads == "first":
            first = forward.first_tokens_forward(family, layer, states, chunk)
            answers = family.answer_first(family.final_norm(first))
            yield from ((place, answers) for place in after.ends)
            continue
        reached = forward.layer_forward(family, layer, states, chunk)
        if after.ends:
            answers = forward.read(family, reached, chunk)
            yield from ((place, answers) for place in after.ends)
        yield from _answers(family, after, reached, chunk)
