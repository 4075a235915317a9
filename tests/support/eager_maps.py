"""Attention maps from plain transformers, one text at a time, in eager mode: the reference."""

from __future__ import annotations

import numpy as np
import torch


def eager_maps(model, tokenizer, *texts, max_length=None) -> np.ndarray:
    """(layers, heads, L, L) of one text, or of a pair of texts."""
    cut = {} if max_length is None else {"truncation": True, "max_length": max_length}
    batch = tokenizer(*texts, return_tensors="pt", return_token_type_ids=True, **cut)
    before = model.config._attn_implementation
    if before != "eager":
        model.set_attn_implementation("eager")
    with torch.no_grad():
        maps = model(**batch, output_attentions=True).attentions
    if before != "eager":
        model.set_attn_implementation(before)
    return np.stack([one[0].double().numpy() for one in maps])
