"""Predictions of a whole data set, and its states: what other parts ask the engine for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from microtome.observe import forward
from microtome.observe.packing import TOKENS_IN_FLIGHT, Chunk, packed
from microtome.observe.products import FastProducts
from microtome.observe.texts import Encoded, fitted

FloatArray = NDArray[np.float32]


@FastProducts()
@torch.inference_mode()
def predict(
    model: PreTrainedModel,
    texts: Encoded,
    *,
    tokens_in_flight: int = TOKENS_IN_FLIGHT,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> FloatArray:
    """What the model's head gives, in the order of the texts.

    A classifier gives logits (n, labels), a sentence embedder embeddings (n, D'), a masked LM
    (n, 5) numbers about the masked tokens of each text. Token classification gives logits
    (T, labels), question answering start and end logits (T, 2), for every token; tokens beyond the
    position table get −inf.
    """
    family = forward.bound(model, device=device, dtype=dtype)
    forward.check_head(family, texts)
    own = fitted(texts, family.n_positions)
    by_token = family.by_token
    gathered: FloatArray | None = None
    for chunk in packed(own, tokens_in_flight=tokens_in_flight, device=family.model.device):
        states = forward.embedded(family, chunk)
        logits = forward.finished(family, states, chunk, start=0).float().cpu().numpy()
        if gathered is None:
            n_rows = len(texts.ids) if by_token else len(own)
            gathered = np.full((n_rows, logits.shape[1]), -np.inf, dtype=np.float32)
        gathered[own.source_of(chunk.tokens) if by_token else chunk.texts] = logits
    assert gathered is not None  # fitted() refuses an empty data set
    return gathered


@torch.no_grad()  # not inference_mode: a probe trains on these, and autograd refuses its tensors
def states(
    model: PreTrainedModel,
    texts: Encoded,
    *,
    tokens_in_flight: int = TOKENS_IN_FLIGHT,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> Iterator[tuple[Chunk, list[Tensor]]]:
    """Chunk by chunk, the states (T, D) at depth 0..N, before any final norm.

    ``chunk.texts`` and ``chunk.tokens`` say which of the input they are; ``chunk.first_rows`` are
    the [CLS] rows.
    """
    family = forward.bound(model, device=device, dtype=dtype)
    own = fitted(texts, family.n_positions)
    for chunk in packed(own, tokens_in_flight=tokens_in_flight, device=family.model.device):
        with FastProducts():
            by_depth = list(forward.depths(family, chunk))
        yield chunk, by_depth
