"""Answers of many edited models to the same texts; what lies below an edit is computed once.

The states at every depth are kept for the base and for the model asked last. An edited model starts
from the depth up to which it is one of them, tensor by tensor, and gives exactly what
``observe.predict`` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from microtome.families.seam import Family
from microtome.observe import Encoded, forward
from microtome.observe.packing import TOKENS_IN_FLIGHT, Chunk, packed
from microtome.observe.texts import fitted

FloatArray = NDArray[np.float32]
BYTES_KEPT = 2**28  # of one model's states: where they are more, only some depths are kept
Step = Callable[[int, int], None]


@dataclass
class _Known:
    """A model, and the states of its texts: by chunk, by depth."""

    family: Family
    states: dict[int, dict[int, Tensor]] = field(default_factory=dict)


class SharedPasses:
    """Forward passes over one set of texts.

    passes = SharedPasses(model, encoded)
    passes.predict(apply(parse("remove(4)"), model))   # layers 0 to 3 are not computed again
    """

    def __init__(self, model: PreTrainedModel, texts: Encoded) -> None:
        family = forward.bound(model)
        forward.check_head(family, texts)
        self.by_token, self.n_given = family.by_token, len(texts.ids)
        self.texts = fitted(texts, family.n_positions)
        device = family.model.device
        self.chunks = list(packed(self.texts, tokens_in_flight=TOKENS_IN_FLIGHT, device=device))
        self.base, self.last = _Known(family), _Known(family)
        depth_bytes = 4 * len(self.texts.ids) * family.shape.width
        n_kept = max(1, BYTES_KEPT // depth_bytes)
        self.every = -(-family.shape.n_layers // n_kept)  # which depths are kept

    @torch.inference_mode()
    def predict(self, model: PreTrainedModel, step: Step = lambda done, total: None) -> FloatArray:
        """What ``observe.predict`` gives for the texts.

        ``step`` is told (layers done, layers) before every layer of every chunk; what it raises
        ends the pass, and nothing of it is kept.
        """
        family = self.base.family if model is self.base.family.model else forward.bound(model)
        start, known = max(
            ((_alike(each.family, family), each) for each in (self.base, self.last)),
            key=lambda pair: pair[0],
        )
        now = self.base if family is self.base.family else _Known(family)
        n_layers = family.shape.n_layers
        gathered: FloatArray | None = None
        for place, chunk in enumerate(self.chunks):
            kept = {d: s for d, s in known.states.get(place, {}).items() if d <= start}
            told = partial(_tell, step, place * n_layers, len(self.chunks) * n_layers)
            states = self._last_states(family, chunk, kept, told)
            logits = forward.finished(family, states, chunk, start=n_layers - 1)
            now.states[place] = kept
            numbers = logits.float().cpu().numpy()
            if gathered is None:
                n_rows = self.n_given if self.by_token else len(self.texts)
                gathered = np.full((n_rows, numbers.shape[1]), -np.inf, dtype=np.float32)
            gathered[self.texts.source_of(chunk.tokens) if self.by_token else chunk.texts] = numbers
        if now is not self.base:
            self.last = now
        assert gathered is not None  # fitted() refuses an empty data set
        return gathered

    def _last_states(
        self, family: Family, chunk: Chunk, kept: dict[int, Tensor], step: Callable[[int], None]
    ) -> Tensor:
        """The input of the last layer; on the way ``kept`` gets the states that are kept."""
        last = family.shape.n_layers - 1
        depth = max((d for d in kept if d <= last), default=0)
        states = kept[depth] if kept else forward.embedded(family, chunk)
        while True:
            step(depth)
            if depth % self.every == 0:
                kept[depth] = states
            if depth == last:
                return states
            states = forward.layer_forward(family, depth, states, chunk)
            depth += 1


def _tell(step: Step, before: int, total: int, depth: int) -> None:
    step(before + depth, total)


def _alike(one: Family, two: Family) -> int:
    """Up to which depth two models compute the same, by their weights; −1: not even embeddings."""
    if one is two:
        return one.shape.n_layers
    if not _equal(_outside(one), _outside(two)):
        return -1
    depth = 0
    for ours, theirs in zip(one.layers, two.layers, strict=False):
        alike = one.window(depth) == two.window(depth)
        if not alike or not _equal(ours.parameters(), theirs.parameters()):
            break
        depth += 1
    return depth


def _outside(family: Family) -> Iterator[Tensor]:
    """The parameters of a model that are in none of its layers."""
    inside = {id(p) for layer in family.layers for p in layer.parameters()}
    return (p for p in family.model.parameters() if id(p) not in inside)


def _equal(ours: Iterator[Tensor], theirs: Iterator[Tensor]) -> bool:
    pairs = zip_longest(ours, theirs)
    return all(a is not None and b is not None and (a is b or torch.equal(a, b)) for a, b in pairs)
