"""Attention on links between words, beside the same links moved elsewhere in the text.

A link is a set of (query, key) pieces; its weight in a head is the largest among them. Moving all
of it by the same number of tokens keeps the signed offsets and the number of pairs under the
maximum, and loses the link: a head that goes by position alone has the same weight at every
placement. Moving the queries alone keeps the keys: a head with a vertical stripe has the same
weight. Placements stay among ordinary tokens, queries and keys each on their side of a pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from microtome.observe import MapBlock

Pair = tuple[int, int]  # query, key: places within a text
Link = tuple[Pair, ...]
Places = NDArray[np.int64]  # (placements, pairs)


@dataclass(frozen=True, eq=False)
class Placements:
    """Where a link stands and could stand; row 0 is the link itself.

    ``queries`` and ``keys`` move together; with ``stripes`` as queries the keys stay.
    """

    queries: Places
    keys: Places
    stripes: Places


def placements_of(
    link: Link, sides: NDArray[np.int64], *, avoid: Iterable[Pair] = ()
) -> Placements:
    """All placements of a link in a text whose tokens have these ``sides`` (−1: special).

    A placement that touches a pair of ``avoid`` is left out; the link itself never is.
    """
    pairs = np.array(link, dtype=np.int64)  # (P, 2)
    taken = frozenset(avoid)
    moved = [pairs]
    striped = [pairs]
    for step in range(-len(sides), len(sides) + 1):
        if step:
            moved += _allowed(pairs + step, pairs, sides, taken)
            striped += _allowed(pairs + np.array([step, 0]), pairs, sides, taken)
    together, alone = np.stack(moved), np.stack(striped)
    return Placements(together[..., 0], together[..., 1], alone[..., 0])


def _allowed(
    placed: NDArray[np.int64],
    original: NDArray[np.int64],
    sides: NDArray[np.int64],
    taken: frozenset[Pair],
) -> list[NDArray[np.int64]]:
    if placed.min() < 0 or placed.max() >= len(sides):
        return []
    if (sides[placed] != sides[original]).any() or (placed[:, 0] == placed[:, 1]).any():
        return []
    return [] if any((int(q), int(k)) in taken for q, k in placed) else [placed]


class LinkAttention:
    """The weight on every text's links, elsewhere at the same offsets, and from other queries.

    A reduction of ``observe.stream``: ``values``, ``control`` and ``stripe`` are (texts, layers,
    heads), the mean over a text's links, NaN where a text has none. A link that can stand nowhere
    else has no control; such links are left out and counted in ``n_alone``. With ``keep``,
    ``placed[text]`` holds (layers, heads, placements) of texts with one link.
    """

    def __init__(self, links: Mapping[int, Sequence[Placements]], *, keep: bool = False) -> None:
        self.n_alone = sum(len(one.queries) < 2 for own in links.values() for one in own)
        kept = {t: [one for one in own if len(one.queries) > 1] for t, own in links.items()}
        self.links = {text: own for text, own in kept.items() if own}
        self.n_links = sum(map(len, self.links.values()))
        self.keep = keep
        self.placed: dict[int, NDArray[np.float32]] = {}

    def open(self, n_layers: int, n_heads: int, n_texts: int) -> None:
        """Room for every text and head."""
        shape = (n_texts, n_layers, n_heads)
        self.values = np.full(shape, np.nan, dtype=np.float32)
        self.control = np.full(shape, np.nan, dtype=np.float32)
        self.stripe = np.full(shape, np.nan, dtype=np.float32)

    def add(self, block: MapBlock) -> None:
        """Look the links up in every text's maps."""
        for row, text in enumerate(block.texts.tolist()):
            if own := self.links.get(text):
                self._add(block.maps[row], text, block.layer, own)

    def _add(self, maps: Tensor, text: int, layer: int, links: Sequence[Placements]) -> None:
        weights = [_most(maps, one.queries, one.keys) for one in links]  # (H, S) each
        stripes = [
            _most(maps, one.stripes, np.broadcast_to(one.keys[0], one.stripes.shape))
            for one in links
        ]
        self.values[text, layer] = _mean([own[:, 0] for own in weights])
        self.control[text, layer] = _mean([own[:, 1:].mean(-1) for own in weights])
        other = [own[:, 1:].mean(-1) for own in stripes if own.shape[-1] > 1]
        if len(other) == len(links):
            self.stripe[text, layer] = _mean(other)
        if self.keep and len(links) == 1:
            own = weights[0].float().cpu().numpy()
            if text not in self.placed:
                self.placed[text] = np.empty((self.values.shape[1], *own.shape), np.float32)
            self.placed[text][layer] = own


def _most(maps: Tensor, queries: Places, keys: Places) -> Tensor:
    """The largest weight of every placement: (H, S)."""
    query = torch.from_numpy(np.ascontiguousarray(queries)).to(maps.device)
    key = torch.from_numpy(np.ascontiguousarray(keys)).to(maps.device)
    return maps[:, query, key].amax(-1)


def _mean(found: Sequence[Tensor]) -> NDArray[np.float32]:
    mean: NDArray[np.float32] = torch.stack(list(found)).mean(0).float().cpu().numpy()
    return mean


@dataclass(frozen=True, eq=False)
class PlacementTest:
    """p-values (V,) of heads: alone, and corrected for looking at all of them."""

    p: NDArray[np.float64]
    p_max: NDArray[np.float64]


def placement_test(
    placed: Sequence[NDArray[np.floating]],
    *,
    clusters: Sequence[object] | None = None,
    repeats: int = 2000,
    seed: int = 0,
) -> PlacementTest:
    """Whether links stand where heads look: texts' weights (V, S), placement 0 the link's own.

    If a head doesn't care, each placement was as likely to be the link's. So links are put to
    random placements, the same for all heads, and the sum over texts is compared; the largest
    standardised sum over heads corrects for their number. Texts of one cluster share their draw.
    """
    centred = [np.asarray(own, float) - np.mean(own, axis=1, keepdims=True) for own in placed]
    spread = np.sqrt(sum((own**2).mean(axis=1) for own in centred))
    scale = np.where(spread > 1e-12, spread, 1.0)
    observed = sum(own[:, 0] for own in centred) / scale  # (V,)
    rng = np.random.default_rng(seed)
    names = range(len(placed)) if clusters is None else clusters
    draws: dict[object, NDArray[np.float64]] = {}
    chance = np.zeros((repeats, len(observed)))
    for own, name in zip(centred, names, strict=True):
        drawn = draws.setdefault(name, rng.random(repeats))
        chance += own[:, (drawn * own.shape[1]).astype(np.int64)].T
    chance /= scale
    tie = 1e-9  # a head that looks alike everywhere ties with itself
    n_as_far = (chance >= observed - tie).sum(axis=0)
    n_max = (chance.max(axis=1)[:, None] >= observed - tie).sum(axis=0)
    return PlacementTest((1 + n_as_far) / (1 + repeats), (1 + n_max) / (1 + repeats))
