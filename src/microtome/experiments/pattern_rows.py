"""From the class of every map to tidy rows: by head, by layer, and of all maps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.observe.patterns.counting import NOTHING, STRIPED
from microtome.observe.patterns.maps import FIRST, PATTERNS, PUNCTUATION, SEPARATOR, WORD
from microtome.observe.patterns.shares import corrected, drawn_mistakes, drawn_shares, mistakes

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
PLACES = {"on_cls": FIRST, "on_sep": SEPARATOR, "on_punctuation": PUNCTUATION, "on_other": WORD}


@dataclass(frozen=True, eq=False)
class Found:
    """What a pass over the examples gave; ``confusion`` (true, given) is the classifier's."""

    patterns: Bytes  # (texts, layers, heads)
    stripes: Bytes  # the kind of token that a striped map's strongest column is on
    confusion: NDArray[np.int64]
    pairs: bool
    clusters: NDArray[np.int64] | None = None


def rows_of(found: Found, *, seed: int = 0) -> list[dict[str, Any]]:
    """One row per pattern: of every head, every layer (head None), and all (layer None too)."""
    rates = mistakes(found.confusion, pairs=found.pairs)
    drawn = drawn_mistakes(found.confusion, seed, pairs=found.pairs)
    rows: list[dict[str, Any]] = []
    for layer, head, part, stripes in _parts(found):
        by_text = shares_by_text(part)
        own = by_text.mean(axis=0)
        again = drawn_shares(by_text, seed, found.clusters)
        low, high = np.quantile(again, [0.025, 0.975], axis=0)
        true = corrected(own, rates)
        ends = _corrected_ends(again, drawn) if head is None else None
        for k, pattern in enumerate(PATTERNS):
            if pattern == "block" and not found.pairs:
                continue  # one text has no blocks
            row = {
                "layer": layer, "head": head, "pattern": pattern, "share": float(own[k]),
                "low": float(low[k]), "high": float(high[k]), "n": len(part),
                "n_maps": part.size, "corrected": float(true[k]),
                "corrected_low": None if ends is None else float(ends[0][k]),
                "corrected_high": None if ends is None else float(ends[1][k]),
            }  # fmt: skip
            rows.append(row | where_stripes_fall(stripes, part, k))
    return rows


def _parts(found: Found) -> Iterator[tuple[int | None, int | None, Bytes, Bytes]]:
    n_texts, n_layers, n_heads = found.patterns.shape
    yield None, None, found.patterns.reshape(n_texts, -1), found.stripes.reshape(n_texts, -1)
    for i in range(n_layers):
        yield i, None, found.patterns[:, i], found.stripes[:, i]
        for j in range(n_heads):
            yield i, j, found.patterns[:, i, j : j + 1], found.stripes[:, i, j : j + 1]


def shares_by_text(part: Bytes) -> Floats:
    """Each text's shares of the classes (texts, 5)."""
    return np.stack([(part == k).mean(axis=1) for k in range(len(PATTERNS))], axis=1)


def where_stripes_fall(stripes: Bytes, part: Bytes, pattern: int) -> dict[str, float | None]:
    """Shares of a striped pattern's maps by what their strongest column is on."""
    own = stripes[(part == pattern) & (stripes != NOTHING)]
    if pattern not in STRIPED or not own.size:
        return dict.fromkeys(PLACES)
    return {name: float((own == kind).mean()) for name, kind in PLACES.items()}


def _corrected_ends(again: Floats, drawn: Floats) -> Floats:
    """Both kinds of chance together: which texts, and which maps the mistakes were counted on."""
    ends: Floats = np.quantile(corrected(again, drawn), [0.025, 0.975], axis=0)
    return ends
