"""Made-up attention maps of each class, to train on beside labelled ones. Never to test on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microtome.observe.patterns.maps import FIRST, PATTERNS, SEPARATOR, WORD, Map

SHORTEST, LONGEST = 7, 50


def made_up(label: int, rng: np.random.Generator) -> Map:
    """A map of this class: its structure over a background of uneven attention."""
    length = int(rng.integers(SHORTEST, LONGEST))
    pattern = PATTERNS[label]
    border = 0
    if pattern == "block" or rng.random() < 0.5:
        border = int(rng.integers(length // 3, 2 * length // 3)) + 1
    kinds = np.full(length, WORD, dtype=np.uint8)
    kinds[0], kinds[-1] = FIRST, SEPARATOR
    if border:
        kinds[border - 1] = SEPARATOR
    scores = rng.gamma(rng.uniform(0.7, 4.0), size=(length, length))
    scores *= rng.gamma(rng.uniform(3.0, 12.0), size=length)  # some keys are liked more by all
    scores /= scores.sum(axis=1, keepdims=True)
    structure = np.zeros((length, length))
    if "vertical" in pattern:
        structure += rng.uniform(0.8, 2.5) * stripes(kinds, rng)
    if "diagonal" in pattern:
        structure += rng.uniform(0.8, 2.5) * line(length, rng)
    if pattern == "block":
        return _map(_blocks(scores, border, rng), kinds, border)
    if pattern == "heterogeneous":
        structure += rng.uniform(0.0, 0.15) * stripes(kinds, rng)
        structure += _patches(length, rng)
    return _map(scores + structure, kinds, border)


def stripes(kinds: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.float64]:
    """One to three columns, mostly [CLS] and [SEP], dark over most of their height."""
    length = len(kinds)
    special = np.flatnonzero(kinds)
    places = special if rng.random() < 0.7 else np.arange(length)
    chosen = rng.choice(places, min(int(rng.integers(1, 4)), len(places)), replace=False)
    found = np.zeros((length, length))
    for column in chosen:
        found[:, column] = rng.uniform(0.2, 1) * rng.beta(3, 1.2, size=length)
    scaled: NDArray[np.float64] = found / max(found.sum(axis=1).mean(), 1e-9)
    return scaled


def line(length: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A line parallel to the diagonal, up to two places away, sharp or blurred."""
    place = np.arange(length)
    offset = int(rng.integers(-2, 3))
    width = rng.uniform(0.2, 1.6)
    found = np.exp(-(((place[None, :] - place[:, None] - offset) / width) ** 2))
    found = found * rng.beta(3, 1.2, size=(length, 1))
    scaled: NDArray[np.float64] = found / max(found.sum(axis=1).mean(), 1e-9)
    return scaled


def _blocks(
    scores: NDArray[np.float64], border: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    second = np.arange(len(scores)) >= border
    across = second[:, None] != second[None, :]
    inner = scores + (rng.uniform(0, 0.6) * line(len(scores), rng) if rng.random() < 0.4 else 0)
    faded = np.where(across, inner * rng.uniform(0, 0.15), inner)
    if rng.random() < 0.4:
        faded[:, 0] += rng.uniform(0, 0.5) * rng.beta(2, 2, size=len(scores))
    return faded


def _patches(length: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Single places and small patches that stand out, anywhere."""
    found = np.zeros((length, length))
    for _ in range(int(rng.integers(0, length))):
        row, column = rng.integers(0, length, size=2)
        tall, wide = rng.integers(1, max(2, length // 6), size=2)
        found[row : row + tall, column : column + wide] += rng.exponential(0.1)
    return found


def _map(weights: NDArray[np.float64], kinds: NDArray[np.uint8], border: int) -> Map:
    rows = weights / weights.sum(axis=1, keepdims=True)
    about = {"map": "made up", "base": "", "layer": "", "head": ""}
    return Map(rows.astype(np.float32), kinds, border, about)
