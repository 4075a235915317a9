"""What tokens of a kind receive: the paper's measure, in pieces or in words, with its control.

Kovaleva et al.: what a token receives from all tokens, divided by their number; of several tokens
of a kind the maximum. A maximum grows with the number of tokens it is taken over, so the control is
the expected maximum of as many tokens drawn at random from the text (special ones aside), which
needs no drawing: it is a weighted sum of the sorted values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from microtome.experiments.annotated_text import AnnotatedTexts
from microtome.experiments.feature_expressions import CLS, SEP, Feature
from microtome.observe import MapBlock

Marks = NDArray[np.bool_]
Received = Callable[[MapBlock], Tensor]  # (n, H, L)


@dataclass(frozen=True, eq=False)
class Units:
    """What counts as a token: each piece, or each word, which then stands at its first piece."""

    leader: NDArray[np.int64]  # (T,) the place, within its input, of the unit that a piece is in
    stands_here: Marks  # (T,) where units stand; their further pieces hold nothing
    sizes: NDArray[np.int64]  # (n,) units of each input
    query_weight: NDArray[np.float32]  # (T,) the weight of a piece among all queries of its input

    def received(self, block: MapBlock) -> Tensor:
        """Per unit: the sum over its pieces as keys, the mean over queries' units: (n, H, L)."""
        weight = block.marked(self.query_weight)  # (n, L)
        by_piece = torch.einsum("nhqk,nq->nhk", block.maps, weight.to(block.maps.dtype))
        return self._gathered(block, by_piece)

    def received_from_first(self, block: MapBlock) -> Tensor:
        """The same from the first token alone, [CLS]."""
        return self._gathered(block, block.maps[:, :, 0])

    def _gathered(self, block: MapBlock, by_piece: Tensor) -> Tensor:
        leader = block.marked(self.leader)[:, None].expand_as(by_piece)
        return torch.zeros_like(by_piece).scatter_add_(-1, leader, by_piece)


def units_of(texts: AnnotatedTexts, *, mode: str) -> Units:
    """``paper``: each piece by itself. ``word``: words; those that share a piece are one."""
    lengths = texts.lengths
    leaders = [np.arange(length) for length in lengths]
    if mode == "word":
        for leader, words in zip(leaders, texts.words, strict=True):
            for word in words:
                joined = np.unique(leader[list(word.pieces)])
                leader[np.isin(leader, joined)] = joined[0]
    sizes = np.array([len(np.unique(leader)) for leader in leaders])
    weights = [
        1.0 / (np.bincount(leader)[leader] * size)
        for leader, size in zip(leaders, sizes, strict=True)
    ]
    return Units(
        leader=np.concatenate(leaders),
        stands_here=np.concatenate([own == np.arange(len(own)) for own in leaders]),
        sizes=sizes,
        query_weight=np.concatenate(weights).astype(np.float32),
    )


def feature_marks(
    texts: AnnotatedTexts, units: Units, features: Sequence[Feature]
) -> dict[str, Marks]:
    """(T,) for every feature, and for [CLS] and [SEP]: the units that have it."""
    first = np.zeros(len(texts.ids), dtype=np.bool_)
    first[texts.offsets[:-1]] = True
    marks = {CLS: first & texts.special, SEP: texts.special & ~first}
    for feature in features:
        own = np.zeros(len(texts.ids), dtype=np.bool_)
        for start, words in zip(texts.offsets, texts.words, strict=False):
            for word in words:
                if feature.holds(word.word):
                    own[start + units.leader[start + np.array(word.pieces)]] = True
        marks[feature.name] = own
    return marks


class MarkedAttention:
    """The most that a marked unit receives, by text and head, beside as many random ones.

    A reduction of ``observe.stream``; ``values`` and ``control`` are (texts, layers, heads) for
    every mark, NaN where a text has no marked unit. With ``layer`` only that layer is looked at.
    """

    def __init__(
        self, marks: dict[str, Marks], pool: Marks, received: Received, *, layer: int | None = None
    ) -> None:
        self.marks, self.pool, self.received, self.layer = marks, pool, received, layer
        self.values: dict[str, NDArray[np.float32]] = {}
        self.control: dict[str, NDArray[np.float32]] = {}

    def open(self, n_layers: int, n_heads: int, n_texts: int) -> None:
        """Room for every text and head."""
        shape = (n_texts, n_layers if self.layer is None else 1, n_heads)
        self.values = {name: np.full(shape, np.nan, dtype=np.float32) for name in self.marks}
        self.control = {name: np.full(shape, np.nan, dtype=np.float32) for name in self.marks}

    def add(self, block: MapBlock) -> None:
        """Measure a block and forget it."""
        if self.layer is not None and block.layer != self.layer:
            return
        place = block.layer if self.layer is None else 0
        got = self.received(block)  # (n, H, L)
        pool = block.marked(self.pool)  # (n, L)
        ranked = got.masked_fill(~pool[:, None], -torch.inf).sort(-1, descending=True).values
        ranked = ranked.masked_fill(ranked == -torch.inf, 0.0)
        for name, marks in self.marks.items():
            own = block.marked(marks)  # (n, L)
            most = got.masked_fill(~own[:, None], -torch.inf).amax(-1)
            absent = ~own.any(-1, keepdim=True)
            weights = chance_weights(own.sum(-1), pool.sum(-1), block.length)
            chance = torch.einsum("nhl,nl->nh", ranked, weights.to(ranked))
            self.values[name][block.texts, place] = most.masked_fill(absent, torch.nan).cpu()
            absent = absent | ~pool.any(-1, keepdim=True)
            self.control[name][block.texts, place] = chance.masked_fill(absent, torch.nan).cpu()


def chance_weights(n_marked: Tensor, n_pool: Tensor, length: int) -> Tensor:
    """The chance (n, L) that the i-th largest of a pool is the largest of some drawn from it.

    C(m − 1 − i, k − 1) / C(m, k) for k drawn of m; all m are drawn where more are asked for.
    """
    m = n_pool.double()[:, None]
    k = torch.minimum(n_marked.double()[:, None], m).clamp_min(1)
    i = torch.arange(length, dtype=torch.float64, device=m.device)[None]
    left = m - 1 - i  # those that are smaller than the i-th
    possible = (left >= k - 1) & (m > 0)
    logs = _log_choose(left.clamp_min(0), (k - 1).expand_as(left)) - _log_choose(m, k)
    return torch.where(possible, logs.exp(), torch.zeros_like(logs))


def _log_choose(n: Tensor, k: Tensor) -> Tensor:
    spare = (n - k).clamp_min(0)
    chosen: Tensor = torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(spare + 1)
    return chosen
