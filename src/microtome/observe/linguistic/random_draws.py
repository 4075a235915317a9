"""Whether heads attend to what is marked or linked: against marks and links put at random.

If a head doesn't care about the marked units of a text, as many others were as likely to be marked;
if it doesn't care about a link, every other place that the link fits into was as likely. So marks
and links are drawn anew, the same for all heads and layers, and the sums over texts are compared.
The largest standardised sum over all heads corrects for their number. Nothing is assumed about how
attention is distributed: what was observed is one draw like the others.

Only sums are kept, so memory doesn't grow with the number of texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

REPEATS = 2000
TIE = 1e-9  # a head that looks alike everywhere ties with itself
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Draws:
    """What was observed, then ``repeats`` random draws of it, text by text.

    A text's draws are the same whenever they are asked for, in whichever layer. Texts of one
    cluster share their draws: a minimal set says as much as one text.
    """

    clusters: IntArray | None = None  # (texts,); None: each text by itself
    repeats: int = REPEATS
    seed: int = 0

    def placements(self, text: int, n_placements: Sequence[int]) -> list[IntArray]:
        """Which of its placements each link of a text is put to: (1 + repeats,), 0 first.

        All links go the same part of the way round their placements.
        """
        part = np.concatenate([[0.0], self._uniform(text, 1)[0]])
        return [(part * n).astype(np.int64) for n in n_placements]

    def marks(self, text: int, marked: IntArray, pool: IntArray) -> IntArray:
        """As many different units of ``pool`` as are marked: (marked, 1 + repeats), these first."""
        uniform = self._uniform(text, len(marked))
        shuffled = np.tile(pool[:, None], self.repeats)  # (pool, repeats)
        repeat = np.arange(self.repeats)
        for i in range(len(marked)):  # Fisher and Yates: the i-th is exchanged with a later one
            other = i + (uniform[i] * (len(pool) - i)).astype(np.int64)
            chosen = shuffled[other, repeat]
            shuffled[other, repeat] = shuffled[i]
            shuffled[i] = chosen
        return np.concatenate([marked[:, None], shuffled[: len(marked)]], axis=1)

    def _uniform(self, text: int, n: int) -> NDArray[np.float64]:
        """(n, repeats); the first ones are the same whatever ``n`` is."""
        unit = text if self.clusters is None else int(self.clusters[text])
        return np.random.default_rng([self.seed, unit]).random((n, self.repeats))


class DrawTest:
    """Sums over texts of what was observed and of what was drawn, for every head.

    ``p`` of a head by itself and ``p_max`` corrected for looking at all of them: (layers, heads),
    one-sided, NaN before any text was added.
    """

    def __init__(self, n_layers: int, n_heads: int, repeats: int = REPEATS) -> None:
        self.sums = np.zeros((n_layers, 1 + repeats, n_heads))

    def add(self, layer: int, weights: NDArray[np.floating]) -> None:
        """One text in one layer: (1 + repeats, heads), the observed weights first."""
        self.sums[layer] += weights

    @property
    def p(self) -> NDArray[np.float64]:
        """How often a draw has as large a sum as was observed."""
        sums = self._standardised()
        return self._share_as_far(sums[:, 1:], sums[:, :1])

    @property
    def p_max(self) -> NDArray[np.float64]:
        """How often any head has as large a standardised sum in a draw."""
        sums = self._standardised()
        return self._share_as_far(sums[:, 1:].max(axis=(0, 2))[:, None], sums[:, :1])

    def _standardised(self) -> NDArray[np.float64]:
        """What was observed counts in mean and spread: under the null it is a draw."""
        centred = self.sums - self.sums.mean(axis=1, keepdims=True)
        spread = centred.std(axis=1, keepdims=True)
        standardised: NDArray[np.float64] = centred / np.where(spread > 1e-12, spread, 1.0)
        return standardised

    def _share_as_far(
        self, drawn: NDArray[np.float64], observed: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        n_as_far = (drawn >= observed - TIE).sum(axis=1)
        p = (1 + n_as_far) / self.sums.shape[1]
        return p if self.sums.any() else np.full(p.shape, np.nan)
