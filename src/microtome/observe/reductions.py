"""Reductions of attention maps to one number per head, and a few maps kept as they are.

A measure is a function from a block to (n, H): one number per text and head, NaN where a text has
nothing to say. :class:`HeadMeans` averages any measure over texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from microtome.errors import RequestError
from microtome.observe.attention import MapBlock

Measure = Callable[[MapBlock], Tensor]
HeadTable = NDArray[np.float64]  # (layers, heads)
SMALLEST = 1e-38  # below it float32 has no normal numbers; 0 · log 0 must be 0
LOGARITHMS_AT_ONCE = 2**18  # 1 MB, which stays in cache


class HeadMeans:
    """The mean of ``measure`` over texts for every head; with ``keep`` the single values too."""

    def __init__(self, measure: Measure, *, keep: bool = False) -> None:
        self.measure = measure
        self.keep = keep
        self.values: NDArray[np.float32] | None = None  # (texts, layers, heads)

    def open(self, n_layers: int, n_heads: int, n_texts: int) -> None:
        """Start at nothing."""
        self.sums = np.zeros((n_layers, n_heads))
        self.squares = np.zeros((n_layers, n_heads))
        self.n = np.zeros((n_layers, n_heads), dtype=np.int64)
        if self.keep:
            self.values = np.full((n_texts, n_layers, n_heads), np.nan, dtype=np.float32)

    def add(self, block: MapBlock) -> None:
        """Measure a block and forget it."""
        measured = self.measure(block).double().cpu().numpy()  # (n, H)
        if self.values is not None:
            self.values[block.texts, block.layer] = measured
        absent = np.isnan(measured)
        if absent.any():
            measured = np.where(absent, 0.0, measured)
        self.sums[block.layer] += measured.sum(axis=0)
        self.squares[block.layer] += (measured * measured).sum(axis=0)
        self.n[block.layer] += len(measured) - absent.sum(axis=0)

    @property
    def mean(self) -> HeadTable:
        """(layers, heads); NaN where no text had anything to say."""
        return np.divide(self.sums, self.n, out=np.full_like(self.sums, np.nan), where=self.n > 0)

    @property
    def standard_error(self) -> HeadTable:
        """Of the mean over texts; NaN below two texts."""
        n = np.maximum(self.n, 2)
        spread = np.maximum(self.squares - self.sums**2 / n, 0.0) / (n - 1)
        return np.where(self.n > 1, np.sqrt(spread / n), np.nan)


@dataclass
class SampledMaps:
    """The maps of chosen texts, kept: ``maps[text]`` is (layers, heads, L, L)."""

    texts: Iterable[int]
    maps: dict[int, NDArray[np.float32]] = field(default_factory=dict)

    def open(self, n_layers: int, n_heads: int, n_texts: int) -> None:
        """Refuse texts that aren't there."""
        self.wanted = frozenset(self.texts)
        self.n_layers = n_layers
        if wrong := [text for text in self.wanted if not 0 <= text < n_texts]:
            raise RequestError(f"the maps of text {wrong[0]} asked for, of {n_texts} texts")

    def add(self, block: MapBlock) -> None:
        """Copy the wanted maps."""
        for row, text in enumerate(block.texts.tolist()):
            if text in self.wanted:
                own = block.maps[row].float().cpu().numpy()
                if text not in self.maps:
                    self.maps[text] = np.empty((self.n_layers, *own.shape), dtype=np.float32)
                self.maps[text][block.layer] = own


# --- where the attention goes: shares of all attention in the text, 0 to 1 ---------------------


def on_first(block: MapBlock) -> Tensor:
    """The share that goes to the first token, [CLS]."""
    return block.received[..., 0]


def on_self(block: MapBlock) -> Tensor:
    """The share of tokens' attention to themselves."""
    return _diagonal(block, 0)


def on_previous(block: MapBlock) -> Tensor:
    """The share that goes to the token before. The first token has none and adds 0."""
    return _diagonal(block, -1)


def on_next(block: MapBlock) -> Tensor:
    """The share that goes to the next token. The last token has none and adds 0."""
    return _diagonal(block, 1)


def on_marked(marks: NDArray[np.bool_]) -> Measure:
    """The share that goes to marked tokens ([SEP], punctuation); ``marks`` (T,) over all texts."""

    def measure(block: MapBlock) -> Tensor:
        own = block.marked(marks).to(block.maps.dtype)  # (n, L)
        return (block.received @ own[..., None]).squeeze(-1)

    return measure


# --- what the maps are like ---------------------------------------------------------------------


def entropy(block: MapBlock) -> Tensor:
    """The entropy of a query's attention in nats, averaged over queries."""
    return _entropy(block.maps)


def distance(block: MapBlock) -> Tensor:
    """How many tokens away attention goes, on average."""
    place = torch.arange(block.length, device=block.maps.device, dtype=block.maps.dtype)
    away = (place[:, None] - place[None, :]).abs().flatten()
    return block.maps.flatten(-2) @ away / block.length


def received_by(marks: NDArray[np.bool_]) -> Measure:
    """Kovaleva et al.: what a marked token receives from all tokens, divided by L.

    Of several marked tokens the one that receives most; texts without one are left out.
    """

    def measure(block: MapBlock) -> Tensor:
        own = block.marked(marks)[:, None]  # (n, 1, L)
        most = block.received.masked_fill(~own, -torch.inf).amax(-1)
        return most.masked_fill(~own.any(-1), torch.nan)

    return measure


def on_links(links: Mapping[int, Sequence[tuple[int, int]]], *, how: str = "max") -> Measure:
    """The weight on a text's links: (query, key) places within the text; the largest or the mean.

    Texts without a link are left out.
    """
    if how not in ("max", "mean"):
        raise RequestError(f"how must be max or mean, got {how}")

    def measure(block: MapBlock) -> Tensor:
        found = block.maps.new_full(block.maps.shape[:2], torch.nan)
        for row, text in enumerate(block.texts.tolist()):
            if pairs := [pair for pair in links.get(text, ()) if max(pair) < block.length]:
                query, key = torch.tensor(pairs, device=found.device).unbind(1)
                weights = block.maps[row][:, query, key]  # (H, pairs)
                found[row] = weights.amax(-1) if how == "max" else weights.mean(-1)
        return found

    return measure


# --- two models ---------------------------------------------------------------------------------


def cosine(block: MapBlock) -> Tensor:
    """The cosine of the two models' flattened maps."""
    ours, theirs = (maps.flatten(-2) for maps in _both(block))
    norms = torch.linalg.vector_norm(ours, dim=-1) * torch.linalg.vector_norm(theirs, dim=-1)
    angle: Tensor = _products(ours, theirs) / norms
    return angle


def cosine_to_other_heads(block: MapBlock) -> Tensor:
    """The mean cosine of a head's map with the second model's other heads of the same layer.

    What two maps have in common without being the same head; NaN where a layer has one head.
    """
    ours, theirs = (_unit(maps.flatten(-2)) for maps in _both(block))
    angles = ours @ theirs.mT  # (n, H, H)
    n_heads = angles.shape[-1]
    own = angles.diagonal(0, -2, -1)
    if n_heads == 1:
        return torch.full_like(own, torch.nan)
    others: Tensor = (angles.sum(-1) - own) / (n_heads - 1)
    return others


def jensen_shannon(block: MapBlock) -> Tensor:
    """The Jensen–Shannon divergence of the two models' attention in nats, averaged over queries."""
    ours, theirs = _both(block)
    return _entropy((ours + theirs) / 2) - (_entropy(ours) + _entropy(theirs)) / 2


def _both(block: MapBlock) -> tuple[Tensor, Tensor]:
    if block.other is None:
        raise RequestError("a comparison of two models asked for, one given", "give other=MODEL")
    return block.maps, block.other


def _unit(flat: Tensor) -> Tensor:
    unit: Tensor = flat / torch.linalg.vector_norm(flat, dim=-1, keepdim=True)
    return unit


def _diagonal(block: MapBlock, offset: int) -> Tensor:
    return block.maps.diagonal(offset, -2, -1).sum(-1) / block.length


def _entropy(maps: Tensor) -> Tensor:
    """(n, H), a few heads at a time: their logarithms stay in cache."""
    n_texts, _, length, _ = maps.shape
    at_once = max(1, LOGARITHMS_AT_ONCE // (n_texts * length**2))
    totals = [
        _products(heads.flatten(-2), heads.clamp_min(SMALLEST).log_().flatten(-2))
        for heads in torch.split(maps, at_once, dim=1)
    ]
    return torch.cat(totals, dim=1) / -length


def _products(ours: Tensor, theirs: Tensor) -> Tensor:
    """Inner products of (n, H, …) rows; unlike ``vecdot`` without a copy of them."""
    return torch.einsum("nhw,nhw->nh", ours, theirs)
