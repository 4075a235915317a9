"""Decoding with its control: the same embeddings and head around random blocks."""

from __future__ import annotations

from collections.abc import Sequence

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome.edits import Reinit
from microtome.families import adapt
from microtome.observe import Decoding, Encoded, Readout, decode, vocabulary_of


def random_blocks(model: PreTrainedModel, *, seed: int = 0) -> PreTrainedModel:
    """A copy of ``model`` with every block drawn afresh; embeddings and head are the model's.

    What it gives back comes through the residual path, not from anything the blocks have learned.
    """
    blocks = f"0-{adapt(model).shape.n_layers - 1}"
    return Reinit(blocks, seed=seed, parts="all")(model)


def decode_with_control(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    encoded: Encoded,
    readout: Readout,
    *,
    special: bool = False,
    control: PreTrainedModel | None = None,
    depths: Sequence[int] | None = None,
) -> tuple[Decoding, Decoding]:
    """The decoding of ``model`` and that of its control, both read through ``readout``.

    ``control`` is ``random_blocks(model)`` unless given: an edited model's control takes the same
    edit after its blocks were drawn. ``special`` and ``depths`` are those of ``observe.decode``.
    """
    vocabulary = vocabulary_of(tokenizer)
    if control is None:
        control = random_blocks(model)
    decoded, controlled = (
        decode(each, encoded, vocabulary, readout=readout, special=special, depths=depths)
        for each in (model, control)
    )
    return decoded, controlled
