"""Texts with a base model's answers to them, as the training loop takes them.

The answers are computed once, packed, and looked up in every step: a step costs what training on
labels costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from microtome.families import adapt
from microtome.families.seam import Family
from microtome.observe.packing import TOKENS_IN_FLIGHT, Chunk, packed
from microtome.observe.predicting import predict
from microtome.observe.texts import Encoded, IntArray, fitted, select_texts
from microtome.training.distil.losses import BY_TOKEN, Answer, distance
from microtome.training.finetune.examples import Examples
from microtome.training.finetune.forward import layer, logits_of
from microtome.training.finetune.losses import UNLABELLED

LABEL_SHARE = 0.3
"""Of the loss, where rows have labels: the base isn't always right."""

HIDDEN: Answer = "hidden token"


@dataclass(frozen=True, eq=False)
class Lessons(Examples):
    """Rows to heal on: ``answers`` are the base's, ``targets`` the labels of those that have any.

    ``answers`` are by text, by token (tags, spans), or by hidden token: then they are the base's
    final states, and ``read`` turns them into its logits, which would fill gigabytes.
    """

    answer: Answer = field(kw_only=True)
    answers: Tensor = field(kw_only=True)
    has_labels: bool = field(default=False, kw_only=True)
    read: Callable[[Tensor], Tensor] | None = field(default=None, kw_only=True)

    def batch(self, rows: IntArray, device: torch.device | str = "cpu") -> tuple[Chunk, Tensor]:
        """These rows as one packed chunk, and where to look up what the loss needs of each."""
        chosen, tokens = select_texts(self.texts, rows)
        chunk = next(packed(chosen, tokens_in_flight=len(chosen.ids), device=device))
        by_token = self.answer in (*BY_TOKEN, HIDDEN)
        places = tokens[chunk.tokens] if by_token else rows[chunk.texts]
        # The labels of a span are by window, its answers by token: both are found from the token.
        return chunk, torch.from_numpy(places)

    def outputs(self, family: Family, chunk: Chunk, dropped: frozenset[int]) -> Tensor:
        """What ``family`` answers: logits, embeddings, or logits of the hidden tokens."""
        if self.answer != HIDDEN:
            return logits_of(family, chunk, dropped=dropped)
        return vocabulary_logits(family, masked_states(family, chunk, dropped))

    def loss(self, outputs: Tensor, targets: Tensor, chunk: Chunk) -> Tensor:
        """The distance from the base's answers, and from the labels where there are any."""
        places = targets.numpy()
        if self.answer == HIDDEN:
            assert self.read is not None
            states = self.answers[torch.from_numpy(self._hidden_before[places[_is_masked(chunk)]])]
            with torch.no_grad():
                base = self.read(states.to(outputs.device, torch.float32))
            return distance(self.answer, outputs, base, chunk)
        base = self.answers[targets].to(outputs.device)
        if not self.has_labels:
            return distance(self.answer, outputs, base, chunk)
        rows = targets
        if self.answer == "span":
            rows = torch.from_numpy(self._text_of_token[places[chunk.first_rows.cpu().numpy()]])
        labels = self.targets[rows].to(outputs.device)
        known = labels != UNLABELLED if self.answer == "tags" else slice(None)
        taught = distance(self.answer, outputs[known], base[known], chunk)
        labelled = super().loss(outputs, labels, chunk)
        return (1 - LABEL_SHARE) * taught + LABEL_SHARE * labelled

    def n_terms(self, rows: IntArray) -> int:
        """How many terms the loss of these rows is the mean of."""
        if self.has_labels:
            return super().n_terms(rows)
        if self.answer == HIDDEN:
            chosen, _ = select_texts(self.texts, rows)
            assert chosen.targets is not None
            return max(1, int((chosen.targets >= 0).sum()))
        if self.answer == "tags":
            return int(self.texts.lengths[rows].sum())
        return len(rows) * (self.answers.shape[1] if self.answer == "labels" else 1)

    @cached_property
    def _hidden_before(self) -> NDArray[np.int64]:
        """For every token, how many hidden ones come before it: where its answer is."""
        assert self.texts.targets is not None
        hidden = np.asarray(self.texts.targets) >= 0
        return np.cumsum(hidden) - hidden

    @cached_property
    def _text_of_token(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.texts)), self.texts.lengths)


def lessons_of(
    base: PreTrainedModel,
    answer: Answer,
    examples: Examples,
    answers: NDArray[np.float32],
    *,
    has_labels: bool,
) -> Lessons:
    """``examples`` with the answers that ``base`` gave to their texts (:func:`base_answers`)."""
    family = adapt(base)
    read = partial(vocabulary_logits, family) if answer == HIDDEN else None
    return Lessons(
        examples.kind, examples.texts, examples.targets,
        answer=answer, answers=torch.from_numpy(answers), has_labels=has_labels, read=read,
    )  # fmt: skip


def base_answers(base: PreTrainedModel, answer: Answer, texts: Encoded) -> NDArray[np.float32]:
    """What a model answers to texts: as ``predict`` gives it; hidden tokens as final states."""
    if answer != HIDDEN:
        return predict(base, texts)
    family = adapt(base)
    own = fitted(texts, family.n_positions)
    found: NDArray[np.float32] | None = None
    assert own.targets is not None
    hidden = np.cumsum(np.asarray(own.targets) >= 0) - 1
    with torch.inference_mode():
        for chunk in packed(own, tokens_in_flight=TOKENS_IN_FLIGHT, device=base.device):
            states = masked_states(family, chunk).float().cpu().numpy()
            if found is None:
                found = np.empty((int(hidden[-1]) + 1, states.shape[1]), dtype=np.float32)
            found[hidden[chunk.tokens[_is_masked(chunk)]]] = states
    assert found is not None  # fitted() refuses an empty data set
    return found


def vocabulary_logits(family: Family, states: Tensor) -> Tensor:
    """A masked LM's logits (n, V) of normed final states (n, D)."""
    logits: Tensor = family.mlm_decoder()(family.mlm_features(states))
    return logits


def masked_states(family: Family, chunk: Chunk, dropped: frozenset[int] = frozenset()) -> Tensor:
    """The final states of a chunk's hidden tokens (n, D), normed where the family norms."""
    states = family.embed(chunk.ids, chunk.positions, chunk.segments)
    for index in range(family.shape.n_layers):
        if index not in dropped:
            states = layer(family, index, states, chunk)
    return family.final_norm(states[torch.from_numpy(_is_masked(chunk)).to(states.device)])


def _is_masked(chunk: Chunk) -> NDArray[np.bool_]:
    assert chunk.targets is not None
    return np.asarray((chunk.targets >= 0).cpu().numpy(), dtype=np.bool_)
