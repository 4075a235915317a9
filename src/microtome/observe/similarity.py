"""How alike the states at different depths are: CKA, block influence, angular distance. Streamed.

CKA is linear and debiased: per batch of texts the unbiased estimate of HSIC (Song et al. 2012),
summed over batches before the ratio is taken (Nguyen et al. 2021). The states of one batch are all
that is held; batches are random texts, not neighbours in length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import t as student
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

from microtome.errors import DataError
from microtome.families import adapt
from microtome.observe.forward import text_means
from microtome.observe.packing import Chunk
from microtome.observe.predicting import states
from microtome.observe.texts import Encoded, IntArray, Texts, fitted, select_texts

BATCH = 64  # texts whose states are held together; the estimate is unbiased for any number
LEAST_TEXTS = 4  # the unbiased HSIC divides by n (n − 3)
LEAST_BATCHES = 3  # below, an interval over batches says nothing
Unit = Literal["text", "token"]
FloatArray = NDArray[np.float64]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Alignment:
    """HSIC of every depth of one model with every depth of another, batch by batch."""

    cross: FloatArray  # (batches, depths, other depths)
    ours: FloatArray  # (batches, depths), of each depth with itself
    theirs: FloatArray  # (batches, other depths)

    @property
    def cka(self) -> FloatArray:
        """(depths, other depths); 1 where states are the same up to rotation and scale."""
        return _ratio(self.cross.sum(0), self.ours.sum(0), self.theirs.sum(0))

    def ends(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Both ends of an interval for ``cka``, by a jackknife over batches; NaN below three."""
        n_batches, value = len(self.cross), self.cka
        if n_batches < LEAST_BATCHES:
            nothing = np.full_like(value, np.nan)
            return nothing, nothing
        parts = (self.cross, self.ours, self.theirs)
        without = np.stack(
            [_ratio(*(part.sum(0) - part[batch] for part in parts)) for batch in range(n_batches)]
        )
        spread = ((without - without.mean(0)) ** 2).sum(0) * (n_batches - 1) / n_batches
        reach = float(student.ppf((1 + level) / 2, n_batches - 1)) * np.sqrt(spread)
        return np.maximum(value - reach, -1.0), np.minimum(value + reach, 1.0)


@dataclass(frozen=True, eq=False)
class LayerSimilarity:
    """What one pass over texts tells of a model's depths, and of another model's."""

    within: Alignment
    across: Alignment | None  # with the other model's depths
    influence: FloatArray  # (texts, layers): 1 − cosine of a layer's input and output
    angles: FloatArray  # (texts, depths, depths): arccos(cosine) / π, 0 to 1


def layer_similarity(
    model: PreTrainedModel,
    texts: Encoded,
    *,
    other: tuple[PreTrainedModel, Encoded] | None = None,
    unit: Unit = "text",
    clusters: IntArray | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> LayerSimilarity:
    """Compare all depths of ``model``, and with those of ``other`` on the same texts.

    A text is the mean of its tokens' states for CKA, or with ``unit="token"`` one of its tokens,
    drawn at random: tokens of one text aren't independent. Influence and angles are means over a
    text's tokens. Texts of one of the ``clusters`` get into the same batch. States are those before
    any final norm. ``progress`` is told (texts done, texts).

        layer_similarity(model, texts).within.cka[3, 4]     how alike depths 3 and 4 are
    """
    given = [(model, texts), *([other] if other is not None else [])]
    sides = [_Side(each, fitted(encoded, adapt(each).n_positions)) for each, encoded in given]
    n_texts = len(sides[0].texts)
    if n_texts < LEAST_TEXTS:
        raise DataError(f"expected {LEAST_TEXTS} texts or more to compare depths, got {n_texts}")
    places = None if unit == "text" else _drawn_places(sides, seed)
    moves = _Moves(n_texts, adapt(model).shape.n_layers)
    cross: list[list[FloatArray]] = []
    selves: list[list[FloatArray]] = []
    n_done = 0
    for batch in _batches(n_texts, clusters, seed):
        grams = [side.grams(batch, places, moves if side is sides[0] else None) for side in sides]
        cross.append([_products(grams[0], theirs) for theirs in grams])
        selves.append([(own**2).sum(1).cpu().numpy() for own in grams])
        n_done += len(batch)
        if progress is not None:
            progress(n_done, n_texts)
    crossed = [np.stack(parts) for parts in zip(*cross, strict=True)]
    norms = [np.stack(parts) for parts in zip(*selves, strict=True)]
    found = [Alignment(crossed[i], norms[0], norms[i]) for i in range(len(sides))]
    across = found[1] if other is not None else None
    return LayerSimilarity(found[0], across, moves.influence, moves.angles)


class _Moves:
    """How far each layer, and each block of layers, moves the states of every text."""

    def __init__(self, n_texts: int, n_layers: int) -> None:
        self.influence = np.empty((n_texts, n_layers))
        self.angles = np.empty((n_texts, n_layers + 1, n_layers + 1))

    def add(self, texts: IntArray, stacked: Tensor, chunk: Chunk) -> None:
        """Measure the states (depths, T, D) of a chunk and forget them."""
        unit = functional.normalize(stacked, dim=-1).transpose(0, 1)
        cosines = (unit @ unit.mT).clamp(-1, 1)  # (T, depths, depths)
        cosines.diagonal(0, -2, -1).fill_(1.0)  # rounding would show as an angle
        moved = text_means(1 - cosines.diagonal(1, -2, -1), chunk)
        self.influence[texts] = moved.cpu().numpy()
        self.angles[texts] = text_means(cosines.arccos() / math.pi, chunk).cpu().numpy()


@dataclass(frozen=True, eq=False)
class _Side:
    """A model, and the texts in its tokens."""

    model: PreTrainedModel
    texts: Texts

    def grams(self, batch: IntArray, places: IntArray | None, moves: _Moves | None) -> Tensor:
        """The centred Gram matrices of a batch of texts, one for each depth."""
        order, vectors = [], []
        for chunk, depths in states(self.model, select_texts(self.texts, batch)[0]):
            stacked = torch.stack(depths).double()  # (depths, T, D)
            order.append(chunk.texts)
            vectors.append(_vectors(stacked, chunk, batch, places))
            if moves is not None:
                moves.add(batch[chunk.texts], stacked, chunk)
        back = torch.from_numpy(np.argsort(np.concatenate(order)))
        return _centred_grams(torch.cat(vectors, 1)[:, back])


def _batches(n_texts: int, clusters: IntArray | None, seed: int) -> Iterator[IntArray]:
    """The texts in random batches alike in size, a cluster's one after the other."""
    rng = np.random.default_rng(seed)
    units = np.arange(n_texts) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    order = np.argsort(rng.permutation(int(units.max()) + 1)[units], kind="stable")
    yield from np.array_split(order, max(1, round(n_texts / BATCH)))


def _drawn_places(sides: list[_Side], seed: int) -> IntArray:
    """A place within each text, the same for both models (n,)."""
    shortest = np.min([side.texts.lengths for side in sides], axis=0)
    places: IntArray = np.random.default_rng([seed, 1]).integers(0, shortest)
    return places


def _vectors(stacked: Tensor, chunk: Chunk, batch: IntArray, places: IntArray | None) -> Tensor:
    """One vector per text and depth: (depths, T, D) → (depths, n, D)."""
    if places is None:
        return text_means(stacked.transpose(0, 1), chunk).transpose(0, 1)
    drawn = torch.from_numpy(places[batch[chunk.texts]]).to(stacked.device)
    return stacked[:, chunk.first_rows + drawn]


def _centred_grams(rows: Tensor) -> Tensor:
    """Each depth's Gram matrix without its diagonal, rows summing to 0: (depths, n, D) → (…, n²).

    Off the diagonal a row's and a column's mean are taken away so that the product of two such
    matrices, over n (n − 3), is the unbiased HSIC (Székely & Rizzo 2014).
    """
    n = rows.shape[1]
    rows = rows - rows.mean(1, keepdim=True)  # changes nothing but rounding
    grams = rows @ rows.mT
    grams.diagonal(0, -2, -1).zero_()
    sums = grams.sum(-1) / (n - 2)  # (depths, n)
    total = sums.sum(-1)[:, None, None] / (n - 1)
    grams = grams - sums[:, :, None] - sums[:, None, :] + total
    grams.diagonal(0, -2, -1).zero_()
    return grams.flatten(1) / math.sqrt(n * (n - 3))


def _products(ours: Tensor, theirs: Tensor) -> FloatArray:
    """HSIC of every pair of depths: (depths, n²), (other depths, n²) → (depths, other depths)."""
    products: FloatArray = (ours @ theirs.to(ours.device).T).cpu().numpy()
    return products


def _ratio(cross: FloatArray, ours: FloatArray, theirs: FloatArray) -> FloatArray:
    norms = np.sqrt(np.outer(ours, theirs))
    return np.divide(cross, norms, out=np.full_like(cross, np.nan), where=norms > 0)
