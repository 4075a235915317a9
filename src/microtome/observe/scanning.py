"""Is the true token the best of the whole vocabulary? Answered in chunks; logits are never kept.

The answer is the same as ``logits.argmax(-1) == ids``, ties included: the first index wins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from microtome.observe.readouts import Readout

VOCABULARY_CHUNK = 1024
WORTH_LEAVING = 0.9  # rows are dropped when no more than this share is still undecided

ROWS_TOGETHER = 1600
"""Enough rows for a product to run at full speed, few enough for its scores to stay small."""


def scanned_together(n_depths: int, n_rows: int) -> list[int]:
    """How many depths of ``n_rows`` rows each go into one scan; as evenly as can be.

    Never more rows than were asked for together, unless one depth has more: short texts leave fewer
    rows of a chunk to read, and the peak of memory would come with them, late.
    """
    together = max(1, ROWS_TOGETHER // max(1, n_rows))
    n_scans = math.ceil(n_depths / together)
    return [n_depths // n_scans + (place < n_depths % n_scans) for place in range(n_scans)]


class VocabularyScan:
    """A scan over one readout's vocabulary, used again and again.

    It remembers which chunks most often held a better token than the true one, and starts there.
    """

    def __init__(
        self, readout: Readout, *, chunk: int = VOCABULARY_CHUNK, early_exit: bool = True
    ) -> None:
        self.readout = readout
        self.early_exit = early_exit
        self.starts = list(range(0, readout.n_tokens, chunk))
        self.chunk = chunk
        self.n_beaten = [0] * len(self.starts)  # rows that each chunk has decided

    def right(self, features: Tensor, ids: Tensor) -> Tensor:
        """Whether each row's best token is its true one: (T, E), (T,) sorted by id → bool (T,)."""
        race = _Race(self.readout, features, ids, self.chunk, can_leave=self.early_exit)
        order = range(len(self.starts))
        for place in sorted(order, key=lambda place: -self.n_beaten[place]):
            race.run(place)
            if self.early_exit:
                self.n_beaten[place] += race.leave()
                if race.is_over:
                    break
        return race.result()

    def right_by_depth(self, states: Sequence[Tensor], ids: Tensor) -> Tensor:
        """The same for several depths' states of the same rows, in one scan: bool (depths, T)."""
        # All depths of a row side by side, so that the rows stay sorted by id.
        together = torch.stack(list(states), dim=1).flatten(0, 1)
        features = self.readout.features(together)
        right = self.right(features, ids.repeat_interleave(len(states)))
        return right.view(-1, len(states)).T


class _Race:
    """The rows of one scan. They are sorted by true token, so those of a chunk are a slice.

    Tokens before the true one beat it with an equal score, tokens after it only with a higher.
    """

    def __init__(
        self, readout: Readout, features: Tensor, ids: Tensor, chunk: int, *, can_leave: bool
    ) -> None:
        self.readout, self.features, self.ids = readout, features, ids
        n_rows = len(ids)
        self.edges = [*range(0, readout.n_tokens, chunk), readout.n_tokens]
        self.bounds = self._bounds()
        self.rows = torch.arange(n_rows, device=ids.device)  # those still running
        self.true = torch.zeros(n_rows, dtype=features.dtype, device=ids.device)
        self.first_of_own = torch.ones(n_rows, dtype=torch.bool, device=ids.device)
        self.before = torch.full_like(self.true, -torch.inf)
        self.after = self.before.clone()
        self.answer = torch.zeros_like(self.first_of_own)
        if can_leave:
            self.surely_beaten = _surely_beaten_above(readout, features, ids)

    def _bounds(self) -> list[int]:
        """Where the rows of each chunk's own tokens start, and where the last ones end."""
        bounds: list[int] = torch.searchsorted(self.ids, self.ids.new_tensor(self.edges)).tolist()
        return bounds

    def run(self, place: int) -> None:
        """Score the tokens of one chunk for all running rows."""
        start, stop = self.edges[place : place + 2]
        low, high = self.bounds[place : place + 2]
        logits = self._logits(start, stop)
        best = logits.amax(1)
        torch.maximum(self.after[:low], best[:low], out=self.after[:low])
        torch.maximum(self.before[high:], best[high:], out=self.before[high:])
        if low < high:
            own, local = logits[low:high], self.ids[low:high] - start
            self.true[low:high] = own.gather(1, local[:, None]).squeeze(1)
            self.first_of_own[low:high] = own.argmax(1) == local

    def _logits(self, start: int, stop: int) -> Tensor:
        bias = None if self.readout.bias is None else self.readout.bias[start:stop]
        return functional.linear(self.features, self.readout.weight[start:stop], bias)

    def leave(self) -> int:
        """Drop rows that can't win any more, if they are many; how many were found beaten."""
        running = torch.maximum(self.before, self.after) <= self.surely_beaten
        running &= self.first_of_own
        n_running = int(running.sum())
        n_beaten = len(running) - n_running
        if n_running <= WORTH_LEAVING * len(running):
            self._keep(running)
            return n_beaten
        return 0

    @property
    def is_over(self) -> bool:
        """Whether no row is left."""
        return len(self.rows) == 0

    def result(self) -> Tensor:
        """The answer for every row that started."""
        won = self.first_of_own & (self.before < self.true) & (self.after <= self.true)
        self.answer[self.rows] = won
        return self.answer

    def _keep(self, running: Tensor) -> None:
        for name in ("rows", "ids", "features", "true", "first_of_own", "before", "after"):
            setattr(self, name, getattr(self, name)[running])
        self.surely_beaten = self.surely_beaten[running]
        self.bounds = self._bounds()


def _surely_beaten_above(readout: Readout, features: Tensor, ids: Tensor) -> Tensor:
    """A score that the true token can't have: its score by a plain dot product, and rounding."""
    weight = readout.weight[ids]
    score = (features * weight).sum(-1)
    if readout.bias is not None:
        score = score + readout.bias[ids]
    # Products of E terms differ by at most E·eps of the norms between two orders of summation.
    norms = torch.linalg.vector_norm(features, dim=-1) * torch.linalg.vector_norm(weight, dim=-1)
    limit: Tensor = score + 1e-4 * norms + 1e-6 * score.abs()
    return limit


def best_tokens(readout: Readout, features: Tensor, *, chunk: int = VOCABULARY_CHUNK) -> Tensor:
    """The best token of every row, as ``argmax`` would give it: (T, E) → (T,)."""
    best = torch.full(features.shape[:1], -torch.inf, device=features.device)
    tokens = torch.zeros(features.shape[:1], dtype=torch.long, device=features.device)
    for start in range(0, readout.n_tokens, chunk):
        bias = None if readout.bias is None else readout.bias[start : start + chunk]
        logits = functional.linear(features, readout.weight[start : start + chunk], bias)
        top, place = logits.max(1)
        higher = top > best
        tokens = torch.where(higher, place + start, tokens)
        best = torch.where(higher, top, best)
    return tokens
