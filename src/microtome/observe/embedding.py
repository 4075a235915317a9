"""Embeddings of texts, as ``SentenceTransformer.encode`` gives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from microtome.errors import RequestError
from microtome.families import adapt
from microtome.families.seam import Family
from microtome.observe.predicting import predict
from microtome.observe.texts import Texts

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def embed(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    prompt: str | None = None,
) -> NDArray[np.float32]:
    """The embedding of every text (n, D'), with the model's default prompt or the one called so.

    ``embed(load("minilm"), load_tokenizer("minilm"), ["A text."])`` has one row of 384 numbers.
    """
    family = adapt(model)
    if family.embedder is None:
        raise RequestError(
            "embeddings asked for, but the model is no embedder",
            "give a sentence-transformers folder, or an encoder with pooling cls or mean",
        )
    return predict(model, tokens_to_embed(family, tokenizer, texts, family.embedder.prompt(prompt)))


def tokens_to_embed(
    family: Family,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    prompt: str = "",
    *,
    max_length: int | None = None,
) -> Texts:
    """The texts as an embedder reads them: with ``prompt`` in front, cut to its own length."""
    length = longest(family, tokenizer, max_length)
    ids = tokenizer([prompt + text for text in texts], truncation=True, max_length=length)
    return replace(Texts.of(ids["input_ids"]), n_prompt=prompt_tokens(tokenizer, prompt))


def longest(
    family: Family, tokenizer: PreTrainedTokenizerBase, max_length: int | None = None
) -> int:
    """How many tokens of a text an embedder reads: what its folder says, or ``max_length``."""
    own = None if family.embedder is None else family.embedder.max_length
    return min(max_length or own or tokenizer.model_max_length, family.n_positions)


def prompt_tokens(tokenizer: PreTrainedTokenizerBase, prompt: str) -> int:
    """How many tokens a prompt takes at the start of a text: [CLS], not the [SEP] at its end."""
    if not prompt:
        return 0
    ids = tokenizer(prompt)["input_ids"]
    return len(ids) - (ids[-1] in tokenizer.all_special_ids)
