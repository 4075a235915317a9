"""Which tokens of some texts are read, which of them a lens is fitted to, and their states."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome.errors import DataError, RequestError
from microtome.families import adapt
from microtome.observe import vocabulary_of
from microtome.observe.evaluation import encode_for, text_clusters
from microtome.observe.predicting import states
from microtome.observe.texts import BoolArray, IntArray, Texts, fitted, select_texts
from microtome.observe.vocabulary import SPECIAL, token_classes
from microtome.tasks import Dataset
from microtome.tasks.encoding.masking import SHOWN, masked

MOST_TOKENS = 20_000  # whose states are kept to fit on
MOST_BYTES = 2**30  # that these states may take, all depths together


@dataclass(frozen=True, eq=False)
class ReadTexts:
    """Texts with the tokens that are read: all ordinary ones, or those that are masked."""

    texts: Texts
    is_read: BoolArray  # (T,)
    truth: NDArray[np.integer]  # (T,), the tokens of the text, hidden or not
    clusters: IntArray | None  # (n,), which texts aren't independent

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def tokens(self) -> IntArray:
        """The places of the tokens that are read, ascending."""
        return np.flatnonzero(self.is_read)

    @property
    def text_of_tokens(self) -> IntArray:
        """Which text each token is of (T,)."""
        return np.repeat(np.arange(len(self)), self.texts.lengths)

    @property
    def digests(self) -> NDArray[np.uint64]:
        """A number for each text that depends on its tokens alone (n,)."""
        digests = [
            hashlib.blake2b(self.truth[start:stop].astype("<i8").tobytes(), digest_size=8).digest()
            for start, stop in pairwise(self.texts.offsets)
        ]
        return np.frombuffer(b"".join(digests), dtype="<u8")

    def select(self, rows: IntArray) -> ReadTexts:
        """Some of the texts."""
        texts, tokens = select_texts(self.texts, rows)
        clusters = None if self.clusters is None else self.clusters[rows]
        return ReadTexts(texts, self.is_read[tokens], self.truth[tokens], clusters)


def read_texts(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    dataset: Dataset,
    *,
    special: bool = False,
    hidden: bool = False,
) -> ReadTexts:
    """The rows as the model reads them; with ``hidden``, 15 % of each text's tokens by [MASK].

    Special tokens and [UNK] aren't read unless ``special``, as in decoding.
    """
    encoded = encode_for(model, tokenizer, dataset)
    clusters = text_clusters(dataset, encoded)
    if hidden:
        encoded = masked(encoded, dataset, tokenizer)
    texts = fitted(encoded, adapt(model).n_positions)
    if texts.targets is not None:
        is_read = texts.targets != SHOWN
        return ReadTexts(texts, is_read, np.where(is_read, texts.targets, texts.ids), clusters)
    classes = token_classes(texts, vocabulary_of(tokenizer))
    is_read = np.ones(len(classes), bool) if special else classes != SPECIAL
    return ReadTexts(texts, is_read, texts.ids, clusters)


def drawn_texts(read: ReadTexts, most: int, seed: int) -> ReadTexts:
    """At most ``most`` of the texts that have a token to read, drawn at random."""
    rows = np.unique(read.text_of_tokens[read.tokens])
    if len(rows) < 2:
        raise DataError(
            f"expected 2 texts or more to fit on, got {len(rows)}", "name some: --fit-text FILE"
        )
    rows = np.random.default_rng([seed, 0]).permutation(rows)[:most]
    return read.select(np.sort(rows))


def drawn_tokens(read: ReadTexts, model: PreTrainedModel, seed: int) -> IntArray:
    """The tokens to fit on, ascending: all that are read, or as many as may be kept."""
    shape = adapt(model).shape
    most = min(MOST_TOKENS, MOST_BYTES // (4 * shape.width * (shape.n_layers + 1)))
    tokens = np.random.default_rng([seed, 1]).permutation(read.tokens)[: max(2, most)]
    return np.sort(tokens)


def cached_states(model: PreTrainedModel, read: ReadTexts, tokens: IntArray) -> Tensor:
    """The states of some tokens at all depths, before any final norm: (N + 1, n, D)."""
    shape = adapt(model).shape
    cache: Tensor | None = None
    for chunk, depths in states(model, read.texts):
        rows = np.flatnonzero(np.isin(chunk.tokens, tokens))
        if cache is None:
            cache = depths[0].new_empty(shape.n_layers + 1, len(tokens), shape.width)
        taken = torch.from_numpy(rows).to(cache.device)
        places = torch.from_numpy(np.searchsorted(tokens, chunk.tokens[rows])).to(cache.device)
        for kept, reached in zip(cache, depths, strict=True):
            kept[places] = reached[taken]
    assert cache is not None  # fitted() refuses an empty data set
    return cache


def check_ids(read: ReadTexts, n_tokens: int) -> None:
    """Refuse texts with tokens that the readout has no score for."""
    highest = int(read.truth.max())
    if highest >= n_tokens:
        raise RequestError(
            f"token id {highest} is not in the vocabulary of {n_tokens} tokens",
            "encode the texts with the model's own tokenizer",
        )
