"""What the engine is compared with: transformers on padded batches, one pass per question asked.

Heads are switched off in the plainest way there is: the attention weights are written down, those
of a switched-off head are replaced by 1/L over the tokens it may see, and nothing is reused.
"""

from __future__ import annotations

from contextlib import contextmanager

import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from microtome.families import adapt
from microtome.observe import Texts
from support.tiny import VOCABULARY, _special_ids, tiny_model

NAME = "naive"
ATTENTIONS = {"mpnet": "attention.attn", "deberta-v2": "attention.self"}
"""Where a layer's attention is in families whose attention can't be replaced by a function."""
OFF: dict = {"heads": set(), "how": "uniform", "calls": 0}


def naive_attention(module, query, key, value, attention_mask, scaling, dropout=0.0, **_):
    """Explicit attention (B, H, L, L), with the heads in OFF replaced."""
    layer = OFF["calls"]
    OFF["calls"] += 1
    length = query.shape[2]
    seen = torch.ones(query.shape[0], 1, length, length, dtype=torch.bool)
    if attention_mask is not None:
        seen = seen & attention_mask
    key, value = (
        part.repeat_interleave(query.shape[1] // part.shape[1], 1) for part in (key, value)
    )
    scores = (query @ key.transpose(-1, -2)) * scaling
    weights = scores.masked_fill(~seen, -1e30).softmax(-1)
    uniform = seen / seen.sum(-1, keepdim=True).clamp_min(1)
    for off_layer, head in OFF["heads"]:
        if off_layer == layer and OFF["how"] == "uniform":
            weights[:, head] = uniform[:, 0]
    context = weights @ value
    for off_layer, head in OFF["heads"]:
        if off_layer == layer and OFF["how"] == "zero":
            context[:, head] = 0
    return context.transpose(1, 2).contiguous(), weights


AttentionInterface.register(NAME, naive_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)


def replace_weights(layer, seen, heads, how):
    """A hook before the dropout on attention weights (B, H, L, L): those of ``heads`` replaced."""

    def hook(module, given):
        OFF["calls"] += 1
        weights = given[0].clone()
        for off_layer, head in heads:
            if off_layer == layer:
                weights[:, head] = seen / seen.sum(-1, keepdim=True) if how == "uniform" else 0
        return (weights,)

    return hook


@contextmanager
def weights_replaced(model, batch, heads, how):
    """Within it, ``model`` computes with these heads off, by hooks on its eager attention."""
    path = ATTENTIONS[model.config.model_type]
    seen = batch["attention_mask"][:, None, :].float()  # (B, 1, L)
    OFF.update(calls=0)
    handles = [
        layer.get_submodule(path).dropout.register_forward_pre_hook(
            replace_weights(index, seen, heads, how)
        )
        for index, layer in enumerate(model.base_model.encoder.layer)
    ]
    yield
    for handle in handles:
        handle.remove()


@contextmanager
def heads_off(model, batch, heads, how="uniform"):
    """Within it, ``model`` computes with these (layer, head) pairs off."""
    if model.config.model_type in ATTENTIONS:
        with weights_replaced(model, batch, heads, how):
            yield
        return
    before = model.config._attn_implementation
    model.set_attn_implementation(NAME)
    OFF.update(heads=set(heads), how=how, calls=0)
    yield
    OFF.update(heads=set())
    model.set_attn_implementation(before)


def naive_logits(model, batch, heads=(), how="uniform"):
    """Classification logits (n, labels), or start and end logits (B, L, 2), heads off."""
    with heads_off(model, batch, heads, how), torch.no_grad():
        out = model(**batch)
    assert OFF["calls"] == model.config.num_hidden_layers
    if hasattr(out, "start_logits"):
        return torch.stack([out.start_logits, out.end_logits], -1)
    return out.logits


def random_texts(lengths, *, seed=0, segments=False):
    """Texts of random tokens, the first and last of each marked special."""
    generator = torch.Generator().manual_seed(seed)
    ids = [torch.randint(5, VOCABULARY, (n,), generator=generator).tolist() for n in lengths]
    halves = [[int(place >= n // 2) for place in range(n)] for n in lengths]
    return Texts.of(ids, segments=halves if segments else None)


def padded(texts, kind="bert", to=None):
    """The same texts as a padded batch for transformers."""
    pad = _special_ids(kind)["pad_token_id"]
    lengths = torch.from_numpy(texts.lengths)
    longest = to or int(lengths.max())
    mask = torch.arange(longest)[None] < lengths[:, None]
    ids = torch.full(mask.shape, pad)
    ids[mask] = torch.from_numpy(texts.ids)
    batch = {"input_ids": ids, "attention_mask": mask.long()}
    if texts.segments is not None:
        batch["token_type_ids"] = torch.zeros_like(ids)
        batch["token_type_ids"][mask] = torch.from_numpy(texts.segments)
    return batch


def on_real(values, batch):
    """The rows of real tokens of (B, L, …), text by text."""
    return values[batch["attention_mask"].bool()]


# --- decoding ------------------------------------------------------------------------


def own_head(model, kind, hidden):
    """The MLM head of each family, called as transformers calls it."""
    if kind in ("bert", "deberta-v2", "nomic_bert"):
        return model.cls(hidden)
    if hasattr(model, "lm_head"):
        return model.lm_head(hidden)
    if kind == "electra":
        return model.generator_lm_head(model.generator_predictions(hidden))
    if kind == "distilbert":
        inner = model.vocab_layer_norm(model.activation(model.vocab_transform(hidden)))
        return model.vocab_projector(inner)
    if kind == "albert":
        return model.predictions(hidden)
    return model.decoder(model.head(hidden))


@torch.no_grad()
def full_logits(model, kind, batch):
    """Logits (B, L, V) at every depth, and the model's own at the end."""
    out = model(**batch, output_hidden_states=True)
    hidden = list(out.hidden_states)
    if kind == "modernbert":  # transformers norms the last one only
        hidden[:-1] = [model.model.final_norm(state) for state in hidden[:-1]]
    if kind == "eurobert":
        hidden[:-1] = [model.model.norm(state) for state in hidden[:-1]]
    return [own_head(model, kind, state) for state in hidden], out.logits


@torch.no_grad()
def faithful_model(kind, texts, seed=0, depth=1):
    """A model whose decoder knows the tokens at one depth: many come back there, fewer elsewhere.

    Each token's row is the mean of its own features at ``depth``, so the nearest mean wins.
    """
    model = tiny_model(kind, "mlm", seed=seed)
    family = adapt(model)
    batch = padded(texts, kind)
    hidden = model(**batch, output_hidden_states=True).hidden_states[depth]
    features = on_real(family.mlm_features(family.final_norm(hidden)), batch)
    decoder = family.mlm_decoder()
    weight = decoder.weight.clone()
    ids = torch.from_numpy(texts.ids)
    for token in ids.unique():
        weight[token] = features[ids == token].mean(0)
    decoder.weight = nn.Parameter(weight)
    decoder.bias = nn.Parameter(-(weight**2).sum(1) / 2)
    return model
