"""Every depth read with transformers alone, and models whose tokens come back at one depth."""

from __future__ import annotations

import torch
from torch import nn

from microtome.families import adapt
from support.naive import on_real, padded
from support.tiny import tiny_model


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
