"""Labelled attention maps as files: what a classifier of patterns learns from and is tested on.

A folder holds ``maps.npz`` (the maps as bytes, and what their tokens are), ``maps.csv`` (where each
comes from) and ``labels.csv`` (map, label). A byte is 255 √weight: with the weight itself, a map of
60 tokens that attends everywhere alike would be 4 in every place, and its structure lost.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from microtome.errors import DataError
from microtome.observe.patterns.network import BLOCK, PATTERNS

LABELS = Path(__file__).resolve().parents[1] / "pattern_labels"
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Map:
    """One attention map, query by key, and what is known of its tokens."""

    weights: NDArray[np.float32]  # (L, L)
    kinds: Bytes  # (L,)
    border: int  # the first token of the second text; 0 where there is one text only
    about: Mapping[str, str]

    @property
    def length(self) -> int:
        """L."""
        return len(self.kinds)

    @property
    def head(self) -> tuple[str, str, str]:
        """The head it comes from. A fine-tuned head is its pre-trained one once more.

        So is a shared layer's head at every depth: ``weights`` names the layer that has them.
        """
        weights = self.about.get("weights", self.about["layer"])
        return self.about["base"], weights, self.about["head"]


def as_bytes(weights: NDArray[np.float32]) -> Bytes:
    """Attention weights as they are stored."""
    stored: Bytes = np.rint(255 * np.sqrt(np.clip(weights, 0, 1))).astype(np.uint8)
    return stored


def as_weights(stored: Bytes) -> NDArray[np.float32]:
    """Stored maps (…, L, L) as weights; rows sum to 1 again."""
    weights = (stored.astype(np.float32) / 255) ** 2
    total = weights.sum(axis=-1, keepdims=True)
    scaled: NDArray[np.float32] = weights / np.maximum(total, np.float32(1e-9))
    return scaled


def save_maps(folder: Path, maps: Sequence[Map]) -> None:
    """Write ``maps.npz`` and ``maps.csv``."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        folder / "maps.npz",
        values=np.concatenate([as_bytes(one.weights).ravel() for one in maps]),
        kinds=np.concatenate([one.kinds for one in maps]),
        lengths=np.array([one.length for one in maps], dtype=np.int16),
        borders=np.array([one.border for one in maps], dtype=np.int16),
    )
    with (folder / "maps.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(maps[0].about), lineterminator="\n")
        writer.writeheader()
        writer.writerows(dict(one.about) for one in maps)


def load_maps(folder: Path) -> list[Map]:
    """The maps of a folder, in the order of ``maps.csv``."""
    for name in ("maps.npz", "maps.csv"):
        if not (folder / name).is_file():
            raise DataError(f"{folder} has no {name}", "expected a folder of labelled maps")
    with np.load(folder / "maps.npz", allow_pickle=False) as stored:
        values, kinds = stored["values"], stored["kinds"]
        lengths, borders = stored["lengths"].astype(np.int64), stored["borders"]
    about = _table(folder / "maps.csv")
    if len(about) != len(lengths) or len(values) != int((lengths**2).sum()):
        raise DataError(f"maps.npz and maps.csv in {folder} don't fit each other")
    tokens, places = (np.concatenate([[0], np.cumsum(n)]) for n in (lengths, lengths**2))
    return [
        Map(
            as_weights(values[places[i] : places[i + 1]].reshape(length, length)),
            kinds[tokens[i] : tokens[i + 1]],
            int(borders[i]),
            about[i],
        )
        for i, length in enumerate(lengths.tolist())
    ]


def load_labels(path: Path, maps: Sequence[Map]) -> NDArray[np.int64]:
    """The class of every map, as a place in :data:`PATTERNS`."""
    given = {row["map"]: row["label"] for row in _table(path)}
    if unknown := sorted(set(given.values()) - set(PATTERNS)):
        raise DataError(
            f"{path.name} has the label {unknown[0]!r}", f"labels: {', '.join(PATTERNS)}"
        )
    if missing := [one.about["map"] for one in maps if one.about["map"] not in given]:
        raise DataError(f"{path.name} has no label for map {missing[0]}")
    labels = np.array([PATTERNS.index(given[one.about["map"]]) for one in maps], dtype=np.int64)
    for one, label in zip(maps, labels, strict=True):
        if label == BLOCK and not one.border:
            raise DataError(f"map {one.about['map']} is of one text, and is labelled block")
    return labels


def _table(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        raise DataError(f"{path} isn't there")
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))
