"""Clean states put into corrupted runs: the layers above are computed for many patches at once.

Both runs of a pair are computed once, and their states at every depth kept. A patch at depth d
starts from the corrupted states at d, so only the layers from d on are computed; all patches of a
depth are packed together, text by text without padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from microtome.experiments.field.patching.questions import FloatArray, Questions, values_at
from microtome.families.seam import Family
from microtome.observe import forward
from microtome.observe.packing import TOKENS_IN_FLIGHT, Chunk, packed
from microtome.observe.products import FastProducts
from microtome.observe.texts import IntArray, Texts

TOKENS_KEPT = 1600  # of both runs, whose states at all depths are held in memory


@dataclass(frozen=True)
class Patch:
    """Positions of a pair whose states are taken from the clean run, together."""

    pair: int
    positions: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Patched:
    """The values of every pair's question: of both runs (pairs,), and (depths, patches)."""

    clean: FloatArray
    corrupted: FloatArray
    values: FloatArray

    def shares(self, patches: Sequence[Patch]) -> FloatArray:
        """The restored share of the difference (depths, patches); NaN where there is none."""
        pairs = [patch.pair for patch in patches]
        corrupted = self.corrupted[pairs]
        gap = self.clean[pairs] - corrupted
        with np.errstate(invalid="ignore", divide="ignore"):
            shares: FloatArray = np.where(gap == 0, np.nan, (self.values - corrupted) / gap)
        return shares


@torch.inference_mode()
def patched_values(
    family: Family,
    clean: Texts,
    corrupted: Texts,
    questions: Questions,
    patches: Sequence[Patch],
    *,
    tokens_in_flight: int = TOKENS_IN_FLIGHT,
    progress: Callable[[int, int], None] | None = None,
) -> Patched:
    """The answers with every patch at every depth 0..N.

    ``clean`` and ``corrupted`` hold the texts of the pairs, of as many tokens. ``progress`` is told
    (pairs done, pairs).
    """
    n_pairs, n_depths = len(clean), family.shape.n_layers + 1
    found = Patched(np.empty(n_pairs), np.empty(n_pairs), np.empty((n_depths, len(patches))))
    device = family.model.device
    chunks = (packed(texts, tokens_in_flight=TOKENS_KEPT, device=device)
              for texts in (clean, corrupted))  # fmt: skip
    n_done = 0
    for before, after in zip(*chunks, strict=True):
        with FastProducts():
            runs = _Runs(
                family, questions, after, list(forward.depths(family, before)),
                list(forward.depths(family, after)),
            )  # fmt: skip
            found.clean[after.texts] = runs.answers(runs.clean[-1])
            found.corrupted[after.texts] = runs.answers(runs.corrupted[-1])
            some = _Patches.of(patches, after)
            for depth in range(n_depths):
                found.values[depth, some.places] = runs.patched(depth, some, tokens_in_flight)
        n_done += len(after.texts)
        if progress is not None:
            progress(n_done, n_pairs)
    return found


@dataclass(frozen=True, eq=False)
class _Patches:
    """The patches of a chunk's pairs, ordered by text: which they are, texts and rows of each."""

    places: IntArray  # (V,) among all patches
    texts: IntArray  # (V,) among the chunk's texts
    rows: list[IntArray]  # of the chunk, V times those that are patched
    first: IntArray  # (V,) the row of the text's first token
    lengths: IntArray  # (V,) of the texts

    @classmethod
    def of(cls, patches: Sequence[Patch], chunk: Chunk) -> _Patches:
        text_of = {pair: text for text, pair in enumerate(chunk.texts.tolist())}
        mine = [place for place, patch in enumerate(patches) if patch.pair in text_of]
        mine.sort(key=lambda place: text_of[patches[place].pair])
        texts = np.array([text_of[patches[place].pair] for place in mine], dtype=np.int64)
        starts = chunk.first_rows.cpu().numpy()
        lengths = np.diff(np.append(starts, chunk.n_tokens))
        rows = [
            starts[text] + np.array(patches[place].positions)
            for place, text in zip(mine, texts, strict=True)
        ]
        return cls(np.array(mine, dtype=np.int64), texts, rows, starts[texts], lengths[texts])

    def batches(self, chosen: IntArray, tokens: int) -> Iterator[IntArray]:
        """Those ``chosen`` in batches of texts with about so many tokens."""
        lengths = self.lengths[chosen]
        batch = (np.cumsum(lengths) - lengths) // tokens
        yield from np.split(chosen, np.flatnonzero(np.diff(batch)) + 1) if len(chosen) else ()


@dataclass(frozen=True, eq=False)
class _Runs:
    """A chunk of pairs: the states at every depth (T, D), in both runs."""

    family: Family
    questions: Questions
    chunk: Chunk  # of the corrupted texts
    clean: list[Tensor]
    corrupted: list[Tensor]

    def answers(self, states: Tensor) -> FloatArray:
        """What a run answers, from its last states."""
        n_layers = self.family.shape.n_layers
        return values_at(self.family, self.questions, states, self.chunk, start=n_layers)

    def patched(self, depth: int, patches: _Patches, tokens_in_flight: int) -> FloatArray:
        """What the corrupted run answers with each patch at ``depth`` (V,)."""
        # A state that is the same in both runs changes nothing: no layer is computed for it.
        differs = (self.clean[depth] != self.corrupted[depth]).any(1).cpu().numpy()
        moving = np.array([differs[rows].any() for rows in patches.rows], dtype=bool)
        values = self.answers(self.corrupted[-1])[patches.texts]
        for some in patches.batches(np.flatnonzero(moving), tokens_in_flight):
            values[some] = self._with(depth, patches, some)
        return values

    def _with(self, depth: int, patches: _Patches, some: IntArray) -> FloatArray:
        """``some`` of the patches, a copy of the corrupted text for each."""
        variants, taken = self.chunk.chosen(patches.texts[some])
        states = self.corrupted[depth][torch.from_numpy(taken)]
        moved = variants.first_rows.cpu().numpy() - patches.first[some]
        source = np.concatenate([patches.rows[place] for place in some])
        target = np.concatenate(
            [patches.rows[place] + by for place, by in zip(some, moved, strict=True)]
        )
        states[torch.from_numpy(target)] = self.clean[depth][torch.from_numpy(source)]
        return values_at(self.family, self.questions, states, variants, start=depth)
