"""A map of each pattern, kept whole: what the classes look like on this model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from microtome.experiments.kit.head_tables import DECIMALS, READABLE
from microtome.observe import stream
from microtome.observe.patterns.network import PATTERNS
from microtome.observe.reductions import SampledMaps
from microtome.observe.texts import Encoded, fitted, select_texts
from microtome.observe.vocabulary import Vocabulary

LONGEST = 32  # tokens of the largest map that is kept

Place = tuple[int, int, int]  # text, layer, head


def example_maps(
    model: PreTrainedModel,
    texts: Encoded,
    patterns: NDArray[np.uint8],
    vocabulary: Vocabulary,
    *,
    device: str | None = None,
) -> dict[str, dict[str, Any]]:
    """By pattern, the columns of an example: its text, layer and head, tokens and weights.

    ``patterns`` (texts, layers, heads) are the classes of all maps of ``texts``.
    """
    lengths = np.diff(texts.offsets)
    places = dict(example_places(patterns, lengths))
    if not places:
        return {}
    chosen = np.unique([text for text, _, _ in places.values()])
    selected, _ = select_texts(fitted(texts, int(lengths.max())), chosen)
    sampled = SampledMaps(range(len(chosen)))
    stream(model, selected, [sampled], device=device)
    return {
        pattern: _columns(place, int(np.searchsorted(chosen, place[0])), sampled, texts, vocabulary)
        for pattern, place in places.items()
    }


def example_places(
    patterns: NDArray[np.uint8], lengths: NDArray[np.int64]
) -> Iterator[tuple[str, Place]]:
    """Each pattern with an example: the head that has it most often, and one of its texts.

    The text is the one whose length is nearest to ``READABLE`` tokens. A pattern that doesn't
    occur, or only in texts of more than ``LONGEST``, has none.
    """
    for k, pattern in enumerate(PATTERNS):
        has_it = (patterns == k) & (lengths <= LONGEST)[:, None, None]  # (texts, layers, heads)
        if not has_it.any():
            continue
        # Counted over all texts: the head doesn't depend on which of them can be shown.
        counts = np.where(has_it.any(axis=0), (patterns == k).sum(axis=0), 0)
        layer, head = np.unravel_index(counts.argmax(), counts.shape)
        own = np.flatnonzero(has_it[:, layer, head])
        text = own[np.abs(lengths[own] - READABLE).argmin()]
        yield pattern, (int(text), int(layer), int(head))


def _columns(
    place: Place, row: int, sampled: SampledMaps, texts: Encoded, vocabulary: Vocabulary
) -> dict[str, Any]:
    text, layer, head = place
    ids = texts.ids[texts.offsets[text] : texts.offsets[text + 1]]
    weights = sampled.maps[row][layer, head].astype(np.float64).round(DECIMALS)
    return {
        "example_text": text,
        "example_layer": layer,
        "example_head": head,
        "example_tokens": [vocabulary.token(int(index)) for index in ids],
        "example_weights": weights.tolist(),
    }
