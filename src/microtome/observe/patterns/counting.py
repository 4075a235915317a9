"""Patterns over a stream of maps: one byte per map is kept, and where its stripe falls."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microtome.observe.attention import MapBlock
from microtome.observe.patterns.classifier import PatternClassifier
from microtome.observe.patterns.network import PATTERNS
from microtome.observe.texts import BoolArray, Encoded
from microtome.observe.vocabulary import Vocabulary

WORD, FIRST, SEPARATOR, PUNCTUATION = range(4)
"""Kinds of tokens: anything else; [CLS]; [SEP]; punctuation."""
NOTHING = 255
STRIPED = (PATTERNS.index("vertical"), PATTERNS.index("vertical+diagonal"))


class PatternCounts:
    """The class of every map, ``found`` (texts, layers, heads), and what token its stripe is on.

    ``second`` (T,) marks the tokens of second texts, ``kinds`` (T,) says what each token is.
    """

    def __init__(
        self, classifier: PatternClassifier, *, second: BoolArray, kinds: NDArray[np.uint8]
    ) -> None:
        self.classifier, self.second, self.kinds = classifier, second, kinds

    def open(self, n_layers: int, n_heads: int, n_texts: int) -> None:
        """Nothing found yet."""
        self.found = np.full((n_texts, n_layers, n_heads), NOTHING, dtype=np.uint8)
        self.stripes = np.full_like(self.found, NOTHING)

    def add(self, block: MapBlock) -> None:
        """Classify a block's maps, all of one length, together."""
        n, n_heads = block.maps.shape[:2]
        maps = block.maps.flatten(0, 1)  # (n · H, L, L)
        second = block.marked(self.second).repeat_interleave(n_heads, 0)
        classes = self.classifier.classify(maps, second).view(n, n_heads).cpu().numpy()
        self.found[block.texts, block.layer] = classes
        strongest = block.received.argmax(-1).cpu().numpy()  # (n, H)
        kinds = np.take_along_axis(self.kinds[block.tokens], strongest, axis=1)
        striped = np.isin(classes, STRIPED)
        self.stripes[block.texts, block.layer] = np.where(striped, kinds, NOTHING)


def second_texts(texts: Encoded) -> BoolArray:
    """Which tokens (T,) are of a text's second part: after the special tokens that end the first.

    Taken from the special tokens, because not every model has segments.
    """
    special = np.asarray(texts.special, bool)
    second = np.zeros(len(special), dtype=np.bool_)
    for start, end in zip(texts.offsets[:-1], texts.offsets[1:], strict=True):
        own = special[start:end]
        # An ordinary token after a special one starts a text; the second start is the border.
        starts = np.flatnonzero(~own[1:] & own[:-1]) + 1
        if len(starts) > 1:
            second[start + starts[1] : end] = True
    return second


def token_kinds(texts: Encoded, vocabulary: Vocabulary) -> NDArray[np.uint8]:
    """What each token is (T,): [CLS], [SEP], punctuation, or anything else."""
    special = np.asarray(texts.special, bool)
    kinds = np.full(len(special), WORD, dtype=np.uint8)
    kinds[vocabulary.punctuation[texts.ids]] = PUNCTUATION
    kinds[special] = SEPARATOR
    starts = np.asarray(texts.offsets[:-1])
    kinds[starts[special[starts]]] = FIRST
    return kinds
