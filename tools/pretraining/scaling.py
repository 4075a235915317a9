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
    size = float(adapt(model).word_embeddings.float().pow(2).mean().sqrt())
    factor = float(model.config.initializer_range) / size
    _scale_(model, factor)
    return factor


@torch.no_grad()
def restore_embeddings_(model: PreTrainedModel) -> float:
    """The way back: as large as they are while the decoder's norm is about 1; the factor taken.

    Pre-training's steps are made for that size. A model that was never shrunk hardly changes.
    """
    factor = float(adapt(model).mlm_norm().weight.float().pow(2).mean().sqrt())
    _scale_(model, factor)
    return factor


def _scale_(model: PreTrainedModel, factor: float) -> None:
    family = adapt(model)
    embeddings = family.body.embeddings
    for part in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
        getattr(embeddings, part).weight.mul_(factor)
    norm = family.mlm_norm()
    norm.weight.div_(factor)
    norm.bias.div_(factor)
