"""Pairs made of single texts: one word is swapped for another of as many tokens.

The words come from the texts themselves. The swaps of a text depend on the text, the seed and the
words that there are; the corrupted text is a text that tokenizes as it is patched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from tokenizers import Encoding

from microtome.experiments.field.patching.pair_file import Input, TextPair
from microtome.experiments.field.patching.pairs import MASK, Encoder, Pair, replaced, tokens_of
from microtome.tasks.task import Row

DRAWS = 4  # at most, for every swap that is wanted: some don't tokenize to as many tokens
APOSTROPHES = "'’"  # next to one, what a tokenizer calls a word is a part of one
Pool = Mapping[int, Sequence[str]]
"""The different words of a data set, in order, by how many tokens they have."""


@dataclass(frozen=True)
class Word:
    """A word of a text: characters of the first or second text, and the tokens that it is."""

    side: int
    start: int
    stop: int
    text: str
    first: int
    n_tokens: int

    @property
    def tokens(self) -> range:
        """Its positions among the tokens."""
        return range(self.first, self.first + self.n_tokens)


def as_read(row: Row, encoder: Encoder) -> Input:
    """The text or texts of a row as far as the model reads them."""
    given: Input = row.text if row.pair is None else (row.text, row.pair)
    encoding = encoder.encode(given)
    if not encoding.overflowing:
        return given
    sides = zip(encoding.sequence_ids, encoding.offsets, strict=True)
    ends = {side: end for side, (_, end) in sides if side is not None}
    texts = [text[: ends.get(side, 0)] for side, text in enumerate(row[:2]) if text is not None]
    return texts[0] if row.pair is None else (texts[0], texts[1])


def words_of(given: Input, encoding: Encoding) -> list[Word]:
    """The whole words of a text, letters and digits alone; special tokens are none."""
    ids = zip(encoding.sequence_ids, encoding.word_ids, strict=True)
    places = [(side, word, place) for place, (side, word) in enumerate(ids) if word is not None]
    found = []
    for (side, _), group in groupby(places, key=lambda each: each[:2]):
        tokens = [place for _, _, place in group]
        text = given if isinstance(given, str) else given[side]
        start, stop = encoding.offsets[tokens[0]][0], encoding.offsets[tokens[-1]][1]
        start = stop - len(text[start:stop].lstrip())  # some tokenizers count the space before
        word = text[start:stop]
        around = text[max(0, start - 1) : start], text[stop : stop + 1]
        if word.isalnum() and not any(c.isalnum() or c in APOSTROPHES for c in around if c):
            found.append(Word(side, start, stop, word, tokens[0], len(tokens)))
    return found


def pool_of(words: Iterable[Word]) -> Pool:
    """All different words, by their number of tokens."""
    pool: dict[int, set[str]] = {}
    for word in words:
        pool.setdefault(word.n_tokens, set()).add(word.text)
    return {n_tokens: sorted(texts) for n_tokens, texts in pool.items()}


def with_word(given: Input, word: Word, new: str) -> Input:
    """The text with another word in the place of one of its own."""
    text = given if isinstance(given, str) else given[word.side]
    changed = text[: word.start] + new + text[word.stop :]
    if isinstance(given, str):
        return changed
    return (changed, given[1]) if word.side == 0 else (given[0], changed)


def swaps_of(
    given: Input, clean: Encoding, encoder: Encoder, pool: Pool, rng: np.random.Generator, n: int
) -> list[tuple[Input, Encoding]]:
    """Up to ``n`` corrupted texts, all different: one word is swapped, no other token changes."""
    words = [word for word in words_of(given, clean) if len(pool.get(word.n_tokens, ())) > 1]
    found: dict[Input, Encoding] = {}
    for _ in range(DRAWS * n if words else 0):
        word = words[int(rng.integers(len(words)))]
        others = pool[word.n_tokens]
        corrupted = with_word(given, word, others[int(rng.integers(len(others)))])
        encoding = encoder.encode(corrupted)
        if len(encoding) == len(clean) and not encoding.overflowing:
            changed = np.flatnonzero(tokens_of(encoding) != tokens_of(clean)).tolist()
            if changed and set(changed) <= set(word.tokens):
                found[corrupted] = encoding
        if len(found) == n:
            break
    return list(found.items())


@dataclass(frozen=True, eq=False)
class Hidden:
    """A text with one of its words, of one token, under the mask."""

    text: Input
    tokens: Encoding
    word: Word
    token: int


def hidden_word(given: Input, encoder: Encoder, rng: np.random.Generator) -> Hidden | None:
    """The text with a random word masked; None where it has no word of one token."""
    clean = encoder.encode(given)
    words = [word for word in words_of(given, clean) if word.n_tokens == 1]
    for place in rng.permutation(len(words)):
        word = words[place]
        masked = with_word(given, word, encoder.mask_token)
        tokens = encoder.encode(masked)
        if len(tokens) == len(clean) and encoder.mask_of(tokens) == word.first:
            return Hidden(masked, tokens, word, int(clean.ids[word.first]))
    return None


def made_pairs(
    rows: Sequence[Row],
    clusters: Iterable[int],
    encoder: Encoder,
    *,
    tries: int,
    seed: int,
    masked: bool,
) -> list[list[Pair]]:
    """For every row, the pairs that were tried; empty where no word can be swapped.

    ``masked``: a word of one token is hidden before another is swapped.
    """
    inputs = [as_read(row, encoder) for row in rows]
    encoded = [encoder.encode(given) for given in inputs]
    words = [word for pair in zip(inputs, encoded, strict=True) for word in words_of(*pair)]
    pool, tried = pool_of(words), []
    for given, clean, cluster in zip(inputs, encoded, clusters, strict=True):
        rng = np.random.default_rng([seed, *clean.ids])
        if not masked:
            swaps = swaps_of(given, clean, encoder, pool, rng, tries)
            tried.append([Pair(TextPair(given, new, cluster), clean, it) for new, it in swaps])
        elif (hidden := hidden_word(given, encoder, rng)) is None:
            tried.append([])
        else:
            swaps = swaps_of(hidden.text, hidden.tokens, encoder, pool, rng, tries)
            tried.append([_masked_pair(hidden, *swap, cluster, encoder) for swap in swaps])
    return tried


def _masked_pair(
    hidden: Hidden, corrupted: Input, encoding: Encoding, cluster: int, encoder: Encoder
) -> Pair:
    """A pair for a masked LM; its texts say [MASK], as in a file."""
    clean, swapped = (replaced(text, encoder.mask_token, MASK) for text in (hidden.text, corrupted))
    texts = TextPair(clean, swapped, cluster, answer=hidden.word.text)
    return Pair(texts, hidden.tokens, encoding, hidden.word.first, hidden.token)
