"""What tokens of a kind receive: the paper's measure, in pieces or in words, with its control.

Kovaleva et al.: what a token receives from all tokens, divided by their number; of several tokens
of a kind the maximum. A maximum grows with the number of tokens it is taken over, so the control is
the expected maximum of as many tokens drawn at random from the text (special ones aside), which
needs no drawing: it is a weighted sum of the sorted values. Whether a head is beyond it is tested
with marks drawn at random (:mod:`.random_draws`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from microtome.observe.attention import MapBlock
from microtome.observe.linguistic.random_draws import Draws, DrawTest, IntArray
from microtome.tasks.annotation.features import CLS, SEP, Feature
from microtome.tasks.annotation.passages import AnnotatedTexts

Marks = NDArray[np.bool_]
Received = Callable[[MapBlock], Tensor]  # (n, H, L)


@dataclass(frozen=True, eq=False)
class Units:
    """What counts as a token: each piece, or each word, which is then kept at its first piece."""

    leader: NDArray[np.int64]  # (T,) the place, within its input, of the unit that a piece is in
    is_leader: Marks  # (T,) the places that units are kept at; their further pieces hold nothing
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
        is_leader=np.concatenate([leader == np.arange(len(leader)) for leader in leaders]),
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
        marked = np.zeros(len(texts.ids), dtype=np.bool_)
        for start, words in zip(texts.offsets, texts.words, strict=False):
            for word in words:
                if feature.holds(word.word):
                    marked[start + units.leader[start + np.array(word.pieces)]] = True
        marks[feature.name] = marked
    return marks


class MarkedAttention:
    """The most that a marked unit receives, by text and head, and that of as many random ones.

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
        received = self.received(block)  # (n, H, L)
        pool = block.marked(self.pool)  # (n, L)
        ranked = received.masked_fill(~pool[:, None], -torch.inf).sort(-1, descending=True).values
        ranked = ranked.masked_fill(ranked == -torch.inf, 0.0)
        for name, marks in self.marks.items():
            marked = block.marked(marks)  # (n, L)
            most = received.masked_fill(~marked[:, None], -torch.inf).amax(-1)
            absent = ~marked.any(-1, keepdim=True)
            weights = chance_weights(marked.sum(-1), pool.sum(-1), block.length)
            chance = torch.einsum("nhl,nl->nh", ranked, weights.to(ranked))
            self.values[name][block.texts, place] = most.masked_fill(absent, torch.nan).cpu()
            absent = absent | ~pool.any(-1, keepdim=True)
            self.control[name][block.texts, place] = chance.masked_fill(absent, torch.nan).cpu()


class RandomMarks:
    """The most that a marked unit receives, compared with as many units drawn at random.

    A reduction of ``observe.stream``; ``tests`` has one for every mark. Units are drawn from
    ``pool`` and what is marked, so that a special token is compared as one of the text's tokens;
    texts without a marked unit, or without a pool, say nothing.
    """

    def __init__(self, marks: dict[str, Marks], pool: Marks, received: Received, draws: Draws):
        self.marks, self.pool, self.received, self.draws = marks, pool, received, draws

    def open(self, n_layers: int, n_heads: int, n_texts: int) -> None:
        """Room for every head and draw, whatever the number of texts."""
        repeats = self.draws.repeats
        self.tests = {name: DrawTest(n_layers, n_heads, repeats) for name in self.marks}
        self.last = n_layers - 1
        self.drawn: dict[int, dict[str, IntArray]] = {}  # of the texts that are under way

    def add(self, block: MapBlock) -> None:
        """What the marked and the drawn units of every text receive."""
        received = self.received(block).mT.contiguous().float().cpu().numpy()  # (n, L, H)
        for row, text in enumerate(block.texts.tolist()):
            if text not in self.drawn:
                self.drawn[text] = self._draw(text, block.tokens[row])
            for name, drawn in self.drawn[text].items():
                self.tests[name].add(block.layer, _most_received(received[row], drawn))
            if block.layer == self.last:
                del self.drawn[text]

    def _draw(self, text: int, tokens: IntArray) -> dict[str, IntArray]:
        """The marked units and the drawn ones for every mark: (marked, 1 + repeats)."""
        pool = self.pool[tokens]
        drawn = {}
        for name, marks in self.marks.items():
            marked = marks[tokens]
            if pool.any() and marked.any():
                candidates = np.flatnonzero(pool | marked)
                drawn[name] = self.draws.marks(text, np.flatnonzero(marked), candidates)
        return drawn


def _most_received(received: NDArray[np.float32], drawn: IntArray) -> NDArray[np.float32]:
    """Of what units receive (L, H), the largest among those of each draw: (draws, H)."""
    most: NDArray[np.float32] = received.take(drawn[0], axis=0)
    for places in drawn[1:]:  # one after the other: in cache, where all at once wouldn't be
        np.maximum(most, received.take(places, axis=0), out=most)
    return most


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
