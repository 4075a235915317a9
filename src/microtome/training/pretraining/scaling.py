"""Input embeddings as small as fresh ones, without changing what the model computes.

AdamW moves every weight by about the learning rate, whatever its size. Pre-training leaves word
embeddings several times as large as fresh ones, so that fine-tuning hardly moves them. They go
through a norm before anything else sees them, hence their size doesn't matter; only the decoder,
which is the same matrix, needs its input larger by as much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from microtome.families import adapt

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@torch.no_grad()
def shrink_embeddings_(model: PreTrainedModel) -> float:
    """Scale the embeddings of a masked LM to the config's initial size; the factor taken.

    BERT and ALBERT, whose decoder is tied: its input's norm is divided by the factor.
    """
    family = adapt(model)
    size = float(family.word_embeddings.float().pow(2).mean().sqrt())
    factor = float(model.config.initializer_range) / size
    embeddings = family.body.embeddings
    for part in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
        getattr(embeddings, part).weight.mul_(factor)
    norm = family.mlm_norm()
    norm.weight.div_(factor)
    norm.bias.div_(factor)
    return factor
