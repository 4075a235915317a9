"""The usual ways, written as their users would: plain transformers, and peers where installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.models.bert.modeling_bert import BertSelfAttention

from microtome.observe import Texts

NAIVE_LENGTH = 128
PEERS = ("nnsight", "pyvene", "transformer_lens")


def padded(texts: Texts, to: int | None = None) -> dict[str, Tensor]:
    """A padded batch: to the longest text, or to a fixed length."""
    lengths = torch.from_numpy(texts.lengths)
    mask = torch.arange(to or int(lengths.max()))[None] < lengths[:, None]
    ids = torch.zeros(mask.shape, dtype=torch.long)
    ids[mask] = torch.from_numpy(texts.ids)
    return {"input_ids": ids, "attention_mask": mask.long()}


def installed_peers() -> list[str]:
    return [name for name in PEERS if importlib.util.find_spec(name) is not None]


@contextmanager
def head_off(model: PreTrainedModel, layer: int, heads: list[int]) -> Iterator[None]:
    """Heads off as checkpoints do it: query rows at zero give uniform attention over real tokens.

    It costs nothing while it runs and works on every attention implementation, so the rivals that
    use it are as fast as plain transformers can be.
    """
    own: BertSelfAttention = model.bert.encoder.layer[layer].attention.self
    width = own.attention_head_size
    kept = own.query.weight.clone(), own.query.bias.clone()
    for head in heads:
        own.query.weight[head * width : (head + 1) * width] = 0
        own.query.bias[head * width : (head + 1) * width] = 0
    yield
    own.query.weight.copy_(kept[0])
    own.query.bias.copy_(kept[1])


@torch.no_grad()
def logits_with_head_off(
    model: PreTrainedModel, batch: dict[str, Tensor], layer: int, heads: list[int]
) -> Tensor:
    """One pass of the plain loop."""
    with head_off(model, layer, heads):
        return model(**batch).logits


@torch.no_grad()
def decoded_counts(model: PreTrainedModel, texts: Texts, to: int | None) -> list[int]:
    """Tokens that come back at every depth, [CLS] and [SEP] left out, from full logits."""
    batch = padded(texts, to)
    hidden = model(**batch, output_hidden_states=True).hidden_states
    real = batch["attention_mask"].bool()
    real[:, 0] = False
    real[torch.arange(len(real)), torch.from_numpy(texts.lengths) - 1] = False
    return [
        int(((model.cls(state).argmax(-1) == batch["input_ids"]) & real).sum()) for state in hidden
    ]


@torch.no_grad()
def attention_statistics(
    one: PreTrainedModel, two: PreTrainedModel, texts: Texts, to: int | None
) -> dict[str, Tensor]:
    """Per head, from maps that the models hand out: cosine, entropy, [CLS] share, distance."""
    batch = padded(texts, to)
    ours, theirs = (model(**batch, output_attentions=True).attentions for model in (one, two))
    sums: dict[str, list[Tensor]] = {"cosine": [], "entropy": [], "on_first": [], "distance": []}
    for own, other in zip(ours, theirs, strict=True):
        found: dict[str, list[Tensor]] = {name: [] for name in sums}
        for maps, compared, n in zip(own, other, texts.lengths.tolist(), strict=True):
            real, real_other = maps[:, :n, :n], compared[:, :n, :n]
            place = torch.arange(n)
            away = (place[:, None] - place).abs()
            found["cosine"].append(
                torch.cosine_similarity(real.flatten(1), real_other.flatten(1), dim=-1)
            )
            found["entropy"].append(torch.special.entr(real).sum(-1).mean(-1))
            found["on_first"].append(real[..., 0].mean(-1))
            found["distance"].append((real * away).sum(-1).mean(-1))
        for name, values in found.items():
            sums[name].append(torch.stack(values).mean(0))
    return {name: torch.stack(values) for name, values in sums.items()}
