"""Attention on links between words, and on the same links moved elsewhere in the text.

A link is a set of (query, key) pieces; its weight in a head is the largest among them. Moving all
of it by the same number of tokens keeps the signed offsets and the number of pairs under the
maximum, and loses the link: a head that goes by position alone has the same weight at every
placement. Moving the queries alone keeps the keys: a head with a vertical stripe has the same
weight. Placements stay among ordinary tokens, queries and keys each on their side of a pair.

Whether a head follows links is tested by random placements (:mod:`.random_draws`). Placements are
in a circle that begins at the link, and all links of a text go the same part of their way round:
links that share a word, or follow one another, still do, in most draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from microtome.observe.attention import MapBlock
from microtome.observe.linguistic.random_draws import Draws, DrawTest
from microtome.observe.linguistic.received_attention import chance_weights

Pair = tuple[int, int]  # query, key: places within a text
Link = tuple[Pair, ...]
Places = NDArray[np.int64]  # (placements, pairs)


@dataclass(frozen=True, eq=False)
class Placements:
    """Where a link is and where it could be; row 0 is the link itself.

    ``queries`` and ``keys`` move together; with ``stripes`` as queries the keys stay. ``elsewhere``
    names the rows that are a control: none of them touches a link.
    """

    queries: Places
    keys: Places
    stripes: Places
    elsewhere: NDArray[np.int64]


def placements_of(
    link: Link, sides: NDArray[np.int64], *, avoid: Iterable[Pair] = ()
) -> Placements:
    """All placements of a link in a text whose tokens have these ``sides`` (−1: special).

    A placement that touches a pair of ``avoid`` is no control.
    """
    pairs = np.array(link, dtype=np.int64)  # (P, 2)
    taken = frozenset(avoid)
    n_steps = len(sides)
    steps = [*range(1, n_steps), *range(1 - n_steps, 0)]  # round the text, on from the link
    moved = [pairs, *_fitting([pairs + step for step in steps], pairs, sides)]
    striped = _fitting([pairs + np.array([step, 0]) for step in steps], pairs, sides)
    together = np.stack(moved)
    queries_alone = np.stack([pairs, *(placed for placed in striped if not _meets(placed, taken))])
    elsewhere = [row for row, placed in enumerate(moved) if row and not _meets(placed, taken)]
    return Placements(
        together[..., 0], together[..., 1], queries_alone[..., 0], np.array(elsewhere, np.int64)
    )


def _fitting(
    moved: Sequence[NDArray[np.int64]], original: NDArray[np.int64], sides: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Those that are within the text, on the same sides, and have no token attend to itself."""
    return [
        placed
        for placed in moved
        if placed.min() >= 0
        and placed.max() < len(sides)
        and (sides[placed] == sides[original]).all()
        and (placed[:, 0] != placed[:, 1]).all()
    ]


def _meets(placed: NDArray[np.int64], taken: frozenset[Pair]) -> bool:
    return any((int(query), int(key)) in taken for query, key in placed)


class LinkAttention:
    """The weight on every text's links, elsewhere at the same offsets, and from other queries.

    A reduction of ``observe.stream``: ``values``, ``control`` and ``stripe`` are (texts, layers,
    heads), the mean over a text's links, NaN where a text has none; ``test`` compares the weight
    with that of random placements. A link that fits nowhere else has no control; such links are
    left out and counted in ``n_alone``.
    """

    def __init__(self, links: Mapping[int, Sequence[Placements]], draws: Draws) -> None:
        movable = {
            text: [link for link in of_text if len(link.elsewhere)]
            for text, of_text in links.items()
        }
        self.links = {text: of_text for text, of_text in movable.items() if of_text}
        self.n_links = sum(map(len, self.links.values()))
        self.n_alone = sum(map(len, links.values())) - self.n_links
        self.draws = draws

    def open(self, n_layers: int, n_heads: int, n_texts: int) -> None:
        """Room for every text and head."""
        shape = (n_texts, n_layers, n_heads)
        self.values = np.full(shape, np.nan, dtype=np.float32)
        self.control = np.full(shape, np.nan, dtype=np.float32)
        self.stripe = np.full(shape, np.nan, dtype=np.float32)
        self.test = DrawTest(n_layers, n_heads, self.draws.repeats)

    def add(self, block: MapBlock) -> None:
        """Look the links up in every text's maps."""
        for row, text in enumerate(block.texts.tolist()):
            if links := self.links.get(text):
                self._add(block.maps[row], text, block.layer, links)

    def _add(self, maps: Tensor, text: int, layer: int, links: Sequence[Placements]) -> None:
        weights = [_most(maps, link.queries, link.keys) for link in links]  # (H, S) each
        stripes = [
            _most(maps, link.stripes, np.broadcast_to(link.keys[0], link.stripes.shape))
            for link in links
        ]
        self.values[text, layer] = _mean([by_place[:, 0] for by_place in weights])
        self.control[text, layer] = _mean(
            [
                by_place[:, link.elsewhere].mean(-1)
                for by_place, link in zip(weights, links, strict=True)
            ]
        )
        elsewhere = [by_place[:, 1:].mean(-1) for by_place in stripes if by_place.shape[-1] > 1]
        if len(elsewhere) == len(links):
            self.stripe[text, layer] = _mean(elsewhere)
        placed = [by_place.float().T.cpu().numpy() for by_place in weights]  # (S, H) each
        drawn = self.draws.placements(text, [len(of_link) for of_link in placed])
        chance = [of_link[rows] for of_link, rows in zip(placed, drawn, strict=True)]
        self.test.add(layer, np.mean(chance, axis=0))


def _most(maps: Tensor, queries: Places, keys: Places) -> Tensor:
    """The largest weight of every placement: (H, S)."""
    query = torch.from_numpy(np.array(queries)).to(maps.device)
    key = torch.from_numpy(np.array(keys)).to(maps.device)
    return maps[:, query, key].amax(-1)


def _mean(tensors: Sequence[Tensor]) -> NDArray[np.float32]:
    mean: NDArray[np.float32] = torch.stack(list(tensors)).mean(0).float().cpu().numpy()
    return mean


class RandomPairs:
    """The expected largest weight among as many random pairs of ordinary tokens as a link has.

    A reduction of ``observe.stream``: ``values`` (texts, layers, heads), NaN for a text that
    ``n_pairs`` doesn't name.
    """

    def __init__(self, n_pairs: Mapping[int, int], ordinary: NDArray[np.bool_]) -> None:
        self.n_pairs, self.ordinary = n_pairs, ordinary

    def open(self, n_layers: int, n_heads: int, n_texts: int) -> None:
        """Room for every text and head."""
        self.values = np.full((n_texts, n_layers, n_heads), np.nan, dtype=np.float32)

    def add(self, block: MapBlock) -> None:
        """Every pair of different ordinary tokens of a text, from large to small."""
        ordinary = block.marked(self.ordinary)
        for row, text in enumerate(block.texts.tolist()):
            if text in self.n_pairs:
                both = ordinary[row][:, None] & ordinary[row][None]
                both.fill_diagonal_(False)
                ranked = block.maps[row][:, both].sort(-1, descending=True).values  # (H, m)
                m = ranked.shape[-1]
                n_drawn = torch.tensor([self.n_pairs[text]])
                weights = chance_weights(n_drawn, torch.tensor([m]), m)[0]
                self.values[text, block.layer] = (ranked @ weights.to(ranked)).cpu()
