"""Labelled maps varied while training: each variation leaves the class as it is.

Most heads of the encoders the labels come from have their stripe on [CLS]. Read from the end, and
with its [CLS] and [SEP] exchanged, the same map has it on [SEP]; a classifier that saw only the
maps as they are calls a diagonal with a stripe on [SEP] a diagonal.
"""

from __future__ import annotations

import numpy as np

from patterns.maps import Map

MIRRORED, EXCHANGED = 0.4, 0.3  # how often


def varied(original: Map, rng: np.random.Generator) -> Map:
    """The map a little sharper or softer, sometimes mirrored, sometimes with tokens exchanged."""
    variation = sharpened(original, rng.uniform(0.85, 1.2))
    if rng.random() < MIRRORED:
        variation = mirrored(variation)
    if variation.border and rng.random() < EXCHANGED:
        variation = exchanged(variation, 0, variation.border - 1)
    return variation


def sharpened(original: Map, exponent: float) -> Map:
    """Every weight to this power; rows sum to 1 again."""
    weights = original.weights**exponent
    weights /= weights.sum(-1, keepdims=True)
    return Map(weights, original.kinds, original.border, original.about)


def mirrored(original: Map) -> Map:
    """The map of the tokens read from the last to the first: lines and blocks stay such."""
    weights = np.ascontiguousarray(original.weights[::-1, ::-1])
    border = original.length - original.border if original.border else 0
    return Map(weights, original.kinds[::-1].copy(), border, original.about)


def exchanged(original: Map, first: int, second: int) -> Map:
    """The map with two tokens of one text in each other's place."""
    order = np.arange(original.length)
    order[[first, second]] = second, first
    weights = original.weights[np.ix_(order, order)]
    return Map(weights, original.kinds[order], original.border, original.about)
