"""The tensors of a model that have a row for every token, and a smaller set of such rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from microtome.families.seam import Family


def vocabulary_tensors(family: Family) -> dict[str, nn.Parameter]:
    """By name, every parameter with a row per token, tied ones once.

    Word embeddings, and the weight and bias of an output layer over the vocabulary, whatever the
    class of the head: a masked LM's, or that of a pre-training class.
    """
    rows = {id(family.word_embeddings)}
    decoder = family.mlm_decoder() if family.head == "mlm" else family.model.get_output_embeddings()
    if isinstance(decoder, nn.Linear) and len(decoder.weight) == len(family.word_embeddings):
        rows |= {id(value) for value in (decoder.weight, decoder.bias) if value is not None}
    return {name: value for name, value in family.model.named_parameters() if id(value) in rows}


def n_fixed_ids(family: Family) -> int:
    """How many of the first ids must keep their number.

    RoBERTa and MPNet count positions from the padding token's id: it can't move.
    """
    return int(getattr(family, "position_offset", 0))


def keep_rows_(family: Family, kept: Sequence[int]) -> None:
    """Let the model have the rows ``kept`` of its vocabulary alone, in that order.

    Config entries that name a token's id follow it; one that names an id without a row is emptied.
    """
    rows = torch.tensor(list(kept), device=family.word_embeddings.device)
    new_ids = {old: new for new, old in enumerate(kept)}
    renumber_config_(family, new_ids)
    replaced = {
        id(value): nn.Parameter(value.detach()[rows].clone(), requires_grad=value.requires_grad)
        for value in vocabulary_tensors(family).values()
    }
    for module in family.model.modules():
        # Every place that holds the tensor gets the new one, so that tied weights stay tied.
        held = {name: replaced.get(id(value)) for name, value in module._parameters.items()}
        for name, value in held.items():
            if value is not None:
                module._parameters[name] = value
        if isinstance(getattr(module, "vocab_size", None), int):
            module.vocab_size = len(kept)
        if held.get("weight") is None:
            continue
        if isinstance(module, nn.Embedding):
            module.num_embeddings = len(kept)
            module.padding_idx = None if module.padding_idx is None else new_ids[module.padding_idx]
        elif isinstance(module, nn.Linear):
            module.out_features = len(kept)


def renumber_config_(family: Family, new_ids: Mapping[int, int]) -> None:
    """The vocabulary's size, and every ``…_token_id``, as they are with the new numbers."""
    config = family.config
    setattr(config, family.facts.config.vocabulary, len(new_ids))
    for key, value in config.to_dict().items():
        if key.endswith("_token_id") and isinstance(value, int):
            setattr(config, key, new_ids.get(value))
