"""Made-up attention maps of each class, to train on with labelled ones. Never to test on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microtome.observe.patterns.counting import FIRST, SEPARATOR, WORD
from microtome.observe.patterns.network import PATTERNS
from patterns.maps import Map

SHORTEST, LONGEST = 7, 200
STRONGEST = 6.0  # a structure's weight, times the background's


def made_up_batch(
    labels: NDArray[np.int64], rng: np.random.Generator, longest: int = LONGEST
) -> list[Map]:
    """Maps of these classes, of about the same length, so that little is padded."""
    largest = np.exp(rng.uniform(np.log(SHORTEST + 2), np.log(longest + 1)))
    lengths = np.maximum(SHORTEST, largest * rng.uniform(0.85, 1, size=len(labels)))
    return [made_up(int(k), rng, int(n)) for k, n in zip(labels, lengths, strict=True)]


def made_up(label: int, rng: np.random.Generator, length: int | None = None) -> Map:
    """A map of this class: its structure over a background of more or less even attention."""
    length = length or int(rng.integers(SHORTEST, LONGEST + 1))
    pattern = PATTERNS[label]
    border = 0
    if pattern == "block" or rng.random() < 0.5:
        border = int(rng.integers(length // 3, 2 * length // 3)) + 1
    kinds = np.full(length, WORD, dtype=np.uint8)
    kinds[0], kinds[-1] = FIRST, SEPARATOR
    if border:
        kinds[border - 1] = SEPARATOR
    if rng.random() < 0.5:
        scores = rng.gamma(_between(0.7, 12.0, rng), size=(length, length))
    else:
        scores = np.exp(rng.normal(scale=rng.uniform(0.2, 1.8), size=(length, length)))
    scores *= rng.gamma(_between(3.0, 60.0, rng), size=length)  # some keys are liked more by all
    scores /= scores.sum(axis=1, keepdims=True)
    structure = np.zeros((length, length))
    faintest = min(0.8, 40 / length)  # the longer the map, the paler its background
    strength = _between(faintest, STRONGEST, rng)
    if "vertical" in pattern:
        structure += strength * stripes(kinds, rng)
    if pattern == "vertical+diagonal":
        strength = max(faintest / 2, strength * _between(0.3, 2.0, rng))
    if "diagonal" in pattern:
        structure += strength * line(length, rng)
    if pattern == "block":
        return _map(_blocks(scores, border, rng), kinds, border)
    if pattern == "heterogeneous":
        structure += rng.uniform(0.0, min(0.15, 5 / length)) * stripes(kinds, rng)
        structure += _patches(length, rng)
    return _map(scores + structure, kinds, border)


def stripes(kinds: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.float64]:
    """One to three columns, mostly [CLS] and [SEP], dark over most of their height.

    Half of the time it is one of them alone: [CLS] as often as each [SEP].
    """
    length = len(kinds)
    special = np.flatnonzero(kinds)
    places = special if rng.random() < 0.7 else np.arange(length)
    n = 1 if rng.random() < 0.5 else int(rng.integers(2, 4))
    chosen = rng.choice(places, min(n, len(places)), replace=False)
    drawn = np.zeros((length, length))
    for column in chosen:
        drawn[:, column] = rng.uniform(0.2, 1) * _unevenness(length, rng)
    scaled: NDArray[np.float64] = drawn / max(drawn.sum(axis=1).mean(), 1e-9)
    return scaled


def line(length: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A line parallel to the diagonal, up to two places away, sharp, blurred, or a broad band."""
    place = np.arange(length)
    offset = int(rng.integers(-2, 3))
    width = rng.uniform(0.2, 1.6) if rng.random() < 0.8 else rng.uniform(0.5, 1 + length / 25)
    drawn = np.exp(-(((place[None, :] - place[:, None] - offset) / width) ** 2))
    drawn = drawn * _unevenness(length, rng)[:, None]
    scaled: NDArray[np.float64] = drawn / max(drawn.sum(axis=1).mean(), 1e-9)
    return scaled


def _unevenness(length: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """How much of a structure each row has: the same for all, or more and less."""
    uneven: NDArray[np.float64] = rng.beta(3, 1.2, size=length) ** rng.uniform(0, 1.2)
    return uneven


def _between(low: float, high: float, rng: np.random.Generator) -> float:
    """Anything between, small values as likely as large ones."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


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
    drawn = np.zeros((length, length))
    for _ in range(int(rng.integers(0, min(length, 40)))):
        row, column = rng.integers(0, length, size=2)
        tall, wide = rng.integers(1, max(2, length // 6), size=2)
        drawn[row : row + tall, column : column + wide] += rng.exponential(min(0.1, 4 / length))
    return drawn


def _map(weights: NDArray[np.float64], kinds: NDArray[np.uint8], border: int) -> Map:
    rows = weights / weights.sum(axis=1, keepdims=True)
    about = {"map": "made up", "base": "", "layer": "", "head": ""}
    return Map(rows.astype(np.float32), kinds, border, about)
