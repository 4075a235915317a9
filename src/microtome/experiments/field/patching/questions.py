"""What is asked of a pair: the answer of the clean text against that of the corrupted one.

A question is one output of the model, or one minus another, so that it has a value at every state:

* labels: the label of the clean run against the best other label of the corrupted run. Where both
  runs say the same, that is the label's margin over the one that comes next in the corrupted run;
* several labels: the label whose output differs most between the runs; a number: the number;
* a masked LM: the token that is hidden (or the guess of the clean run) against the best other
  token of the corrupted run, at the mask.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from microtome.errors import RequestError
from microtome.experiments.field.patching.pairs import NONE
from microtome.families.seam import Family
from microtome.observe import forward
from microtome.observe.evaluation import MULTI_LABEL
from microtome.observe.packing import TOKENS_IN_FLIGHT, Chunk, packed
from microtome.observe.texts import IntArray, Texts

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Questions:
    """For every pair, output ``plus`` minus output ``minus`` (−1: minus nothing).

    Outputs are labels or numbers of a classifier; of a masked LM tokens, at position ``masked``.
    ``change``: how much the corruption changed the answer, larger for more.
    """

    plus: IntArray
    minus: IntArray
    masked: IntArray
    change: FloatArray

    def take(self, pairs: IntArray) -> Questions:
        """Those of some of the pairs."""
        return Questions(
            self.plus[pairs], self.minus[pairs], self.masked[pairs], self.change[pairs]
        )


def answers_with(family: Family) -> str:
    """What the model says of a text: a "label", several "labels", a "number" or a "token"."""
    if family.head == "mlm" and family.embedder is None:
        return "token"
    if family.head != "classification" or family.embedder is not None:
        raise RequestError(
            "patching needs one answer per text, and the model has no such head",
            "give a classifier or a masked LM",
        )
    if family.config.num_labels == 1:
        return "number"
    return "labels" if family.config.problem_type == MULTI_LABEL else "label"


@torch.inference_mode()
def questions_of(
    family: Family,
    clean: Texts,
    corrupted: Texts,
    clean_of: IntArray,
    *,
    masked: IntArray,
    answers: IntArray,
    others: IntArray,
) -> Questions:
    """What to ask of every corrupted text; ``clean_of`` is its clean text.

    ``masked`` and ``answers`` are each clean text's mask and token, ``others`` each corrupted one's
    token; −1 where there is none, or where the model's own guess is taken.
    """
    masked_of = masked[clean_of]
    if answers_with(family) in ("number", "labels"):
        before = _outputs(family, clean, masked)[clean_of]
        moved = np.abs(_outputs(family, corrupted, masked_of) - before)
        plus = moved.argmax(1)
        return Questions(plus, np.full_like(plus, NONE), masked_of, moved.max(1))
    answer, _, before = _best_two(family, clean, masked, answers)
    answer = answer[clean_of]
    _, other, after = _best_two(family, corrupted, masked_of, answer)
    minus = np.where(others == NONE, other, others)
    return Questions(answer, minus, masked_of, before[clean_of] - after)


@torch.inference_mode()
def answers_to(family: Family, texts: Texts, questions: Questions) -> FloatArray:
    """The value of every pair's question in one of its texts (n,)."""
    found = np.empty(len(texts))
    for chunk in packed(texts, tokens_in_flight=TOKENS_IN_FLIGHT, device=family.model.device):
        states = forward.embedded(family, chunk)
        found[chunk.texts] = values_at(family, questions, states, chunk, start=0)
    return found


def values_at(
    family: Family, questions: Questions, states: Tensor, chunk: Chunk, *, start: int
) -> FloatArray:
    """What the model answers from the states at depth ``start`` (T, D): a value per text (n,).

    ``chunk.texts`` says which pair each text is of.
    """
    device = family.model.device
    plus, minus = (
        torch.from_numpy(tokens[chunk.texts]).to(device)
        for tokens in (questions.plus, questions.minus)
    )
    has_other = minus >= 0
    minus = minus.clamp(min=0)
    if answers_with(family) == "token":
        features = _mask_features(family, states, chunk, questions.masked, start=start)
        decoder = family.mlm_decoder()  # two of its rows are enough
        weight = decoder.weight[plus] - decoder.weight[minus]
        values = (features * weight).sum(1)
        if decoder.bias is not None:
            values = values + decoder.bias[plus] - decoder.bias[minus]
    else:
        logits = forward.finished(family, states, chunk, start=start)
        answered, opposed = (logits.gather(1, each[:, None])[:, 0] for each in (plus, minus))
        values = answered - opposed * has_other
    found: FloatArray = values.double().cpu().numpy()
    return found


def _mask_features(
    family: Family, states: Tensor, chunk: Chunk, masked: IntArray, *, start: int
) -> Tensor:
    """What a masked LM's decoder reads at each text's mask (n, E)."""
    for index in range(start, family.shape.n_layers):
        states = forward.layer_forward(family, index, states, chunk)
    place = torch.from_numpy(masked[chunk.texts]).to(states.device)
    return family.mlm_features(family.final_norm(states[chunk.first_rows + place]))


def _logits(family: Family, texts: Texts, masked: IntArray) -> Iterator[tuple[IntArray, Tensor]]:
    """Which texts, and their outputs (n, labels), or of the vocabulary at the mask (n, V)."""
    for chunk in packed(texts, tokens_in_flight=TOKENS_IN_FLIGHT, device=family.model.device):
        states = forward.embedded(family, chunk)
        if answers_with(family) == "token":
            features = _mask_features(family, states, chunk, masked, start=0)
            yield chunk.texts, family.mlm_decoder()(features)
        else:
            yield chunk.texts, forward.finished(family, states, chunk, start=0)


def _outputs(family: Family, texts: Texts, masked: IntArray) -> FloatArray:
    """A classifier's outputs (n, labels)."""
    found = np.empty((len(texts), family.config.num_labels))
    for rows, logits in _logits(family, texts, masked):
        found[rows] = logits.double().cpu().numpy()
    return found


def _best_two(
    family: Family, texts: Texts, masked: IntArray, answers: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """The answer (the best output where it is −1), the best other output, and by how much."""
    chosen, other = np.empty_like(answers), np.empty_like(answers)
    margin = np.empty(len(answers))
    for rows, logits in _logits(family, texts, masked):
        best = logits.topk(2, dim=1).indices
        answer = torch.from_numpy(answers[rows]).to(best.device)
        answer = torch.where(answer < 0, best[:, 0], answer)
        second = torch.where(best[:, 0] == answer, best[:, 1], best[:, 0])
        ahead = logits.gather(1, answer[:, None]) - logits.gather(1, second[:, None])
        chosen[rows], other[rows] = answer.cpu().numpy(), second.cpu().numpy()
        margin[rows] = ahead[:, 0].double().cpu().numpy()
    return chosen, other, margin
