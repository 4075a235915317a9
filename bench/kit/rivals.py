"""The usual ways, written as their users would: plain transformers, and peers where installed."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.models.bert.modeling_bert import BertSelfAttention

from microtome.observe import Texts

NAIVE_LENGTH = 128


def padded(texts: Texts, to: int | None = None) -> dict[str, Tensor]:
    """A padded batch: to the longest text, or to a fixed length."""
    lengths = torch.from_numpy(texts.lengths)
    mask = torch.arange(to or int(lengths.max()))[None] < lengths[:, None]
    ids = torch.zeros(mask.shape, dtype=torch.long)
    ids[mask] = torch.from_numpy(texts.ids)
    return {"input_ids": ids, "attention_mask": mask.long()}


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


def peers() -> dict[str, Callable[..., Tensor]]:
    """One ablated pass by each peer that is installed, and by a plain torch hook.

    TransformerLens isn't among them: its BERT bridge ignores a changed attention pattern, so there
    is no result to compare.
    """
    known = {"torch hooks": _by_hooks, "nnsight": _by_nnsight, "pyvene": _by_pyvene}
    return {
        name: ablate
        for name, ablate in known.items()
        if name == "torch hooks" or importlib.util.find_spec(name) is not None
    }


def _mean_value(value: Tensor, batch: dict[str, Tensor]) -> Tensor:
    """What uniform attention over real tokens gives: (B, L, D) → (B, 1, D)."""
    mask = batch["attention_mask"][..., None].to(value.dtype)
    return (value * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)


def _columns(model: PreTrainedModel, head: int) -> slice:
    width = model.config.hidden_size // model.config.num_attention_heads
    return slice(head * width, (head + 1) * width)


@torch.no_grad()
def _by_hooks(model: PreTrainedModel, batch: dict[str, Tensor], layer: int, head: int) -> Tensor:
    own = model.bert.encoder.layer[layer].attention
    columns, kept = _columns(model, head), {}

    def keep(_module, _inputs, value):
        kept["mean"] = _mean_value(value, batch)

    def put(_module, inputs):
        context = inputs[0].clone()
        context[..., columns] = kept["mean"][..., columns]
        return (context,)

    handles = [
        own.self.value.register_forward_hook(keep),
        own.output.dense.register_forward_pre_hook(put),
    ]
    logits = model(**batch).logits
    for handle in handles:
        handle.remove()
    return logits


@torch.no_grad()
def _by_nnsight(model: PreTrainedModel, batch: dict[str, Tensor], layer: int, head: int) -> Tensor:
    from nnsight import NNsight

    columns = _columns(model, head)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # BERT has modules called "output"
        wrapped = NNsight(model)
    with wrapped.trace(**batch):
        own = wrapped.bert.encoder.layer[layer].attention.self
        mean = _mean_value(own.value.output, batch)
        own.output[0][:, :, columns] = mean[:, :, columns]
        logits = wrapped.classifier.output.save()
    return logits  # noqa: RET504  # nnsight binds it when the block ends


@torch.no_grad()
def _by_pyvene(model: PreTrainedModel, batch: dict[str, Tensor], layer: int, head: int) -> Tensor:
    import pyvene

    columns, kept = _columns(model, head), {}

    def keep(value, *_rest, **_options):
        kept["mean"] = _mean_value(value, batch)
        return value

    def put(context, *_rest, **_options):
        changed = context.clone()
        changed[..., columns] = kept["mean"][..., columns]
        return changed

    place = f"bert.encoder.layer[{layer}].attention"
    wrapped = pyvene.IntervenableModel(
        [
            {"component": f"{place}.self.value.output", "intervention": keep},
            {"component": f"{place}.output.dense.input", "intervention": put},
        ],
        model=model,
    )
    return wrapped(batch)[1].logits


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
    """Per head, from maps that the models hand out; real tokens only, averaged over texts."""
    batch = padded(texts, to)
    ours, theirs = (model(**batch, output_attentions=True).attentions for model in (one, two))
    tables: dict[str, list[Tensor]] = {}
    for own, other in zip(ours, theirs, strict=True):
        found: dict[str, list[Tensor]] = {}
        for maps, compared, n in zip(own, other, texts.lengths.tolist(), strict=True):
            for name, value in _statistics(maps[:, :n, :n], compared[:, :n, :n]).items():
                found.setdefault(name, []).append(value)
        for name, values in found.items():
            tables.setdefault(name, []).append(torch.stack(values).mean(0))
    return {name: torch.stack(values) for name, values in tables.items()}


def _statistics(maps: Tensor, compared: Tensor) -> dict[str, Tensor]:
    """One text's maps (H, L, L) of two models."""
    length = maps.shape[-1]
    place = torch.arange(length)
    away = (place[:, None] - place).abs()
    return {
        "cosine": torch.cosine_similarity(maps.flatten(1), compared.flatten(1), dim=-1),
        "entropy": torch.special.entr(maps).sum(-1).mean(-1),
        "distance": (maps * away).sum(-1).mean(-1),
        "on_first": maps[..., 0].mean(-1),
        "on_last": maps[..., -1].mean(-1),
        "on_self": maps.diagonal(0, -2, -1).sum(-1) / length,
        "on_previous": maps.diagonal(-1, -2, -1).sum(-1) / length,
        "on_next": maps.diagonal(1, -2, -1).sum(-1) / length,
    }
