"""Distances from a base's answers against formulas written out in plain torch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from microtome.observe.packing import packed
from microtome.observe.texts import Texts
from microtome.training.distil.losses import TEMPERATURE, distance

LENGTHS = (4, 7, 4, 2, 7, 5)  # two pairs of equal length: groups of two and of one


def chunk_of(lengths=LENGTHS):
    texts = Texts.of([[5] * length for length in lengths])
    (chunk,) = packed(texts, tokens_in_flight=sum(lengths))
    return chunk


def answers(n: int, width: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    drawn = torch.Generator().manual_seed(seed)
    ours = 2 * torch.randn(n, width, generator=drawn)
    return ours.requires_grad_(), 2 * torch.randn(n, width, generator=drawn)


def softened(row: torch.Tensor) -> list[float]:
    powers = [math.exp(value / TEMPERATURE) for value in row.tolist()]
    return [power / sum(powers) for power in powers]


def kl_by_hand(ours: torch.Tensor, base: torch.Tensor) -> float:
    """T² Σ p ln(p / q), p the base's."""
    total = 0.0
    for own, theirs in zip(ours, base, strict=True):
        pairs = zip(softened(theirs), softened(own), strict=True)
        total += TEMPERATURE**2 * sum(p * math.log(p / q) for p, q in pairs)
    return total


@pytest.mark.parametrize("answer", ["choice", "tags", "hidden token"])
def test_a_choice_is_as_far_as_its_softened_divergence(answer):
    chunk = chunk_of()
    n = len(LENGTHS) if answer == "choice" else chunk.n_tokens
    ours, base = answers(n, 5)
    found = float(distance(answer, ours, base, chunk).detach())
    assert found == pytest.approx(kl_by_hand(ours, base), rel=1e-4)


def test_the_gradient_of_a_choice_does_not_shrink_with_the_temperature():
    """T² (q − p) / T, row by row."""
    ours, base = answers(6, 4)
    distance("choice", ours, base, chunk_of()).backward()
    expected = [
        [TEMPERATURE * (q - p) for q, p in zip(softened(own), softened(theirs), strict=True)]
        for own, theirs in zip(ours, base, strict=True)
    ]
    assert torch.allclose(ours.grad, torch.tensor(expected), atol=1e-5)


def test_labels_are_as_far_as_their_binary_cross_entropies():
    ours, base = answers(6, 3)
    expected = 0.0
    for x, y in zip(ours.flatten().tolist(), base.flatten().tolist(), strict=True):
        q, p = 1 / (1 + math.exp(-x)), 1 / (1 + math.exp(-y))
        expected -= p * math.log(q) + (1 - p) * math.log(1 - q)
    found = float(distance("labels", ours, base, chunk_of()).detach())
    assert found == pytest.approx(expected, rel=1e-5)


def test_numbers_are_as_far_as_their_squared_differences():
    ours, base = answers(6, 1)
    pairs = zip(ours.flatten().tolist(), base.flatten().tolist(), strict=True)
    expected = sum((x - y) ** 2 for x, y in pairs)
    found = float(distance("number", ours, base, chunk_of()).detach())
    assert found == pytest.approx(expected, rel=1e-5)


def test_spans_are_as_far_as_in_a_padded_batch_with_a_masked_softmax():
    chunk = chunk_of()
    ours, base = answers(chunk.n_tokens, 2)
    n, longest = len(LENGTHS), max(LENGTHS)
    # chunk.tokens says which token of the texts in their own order each row is.
    padded = torch.full((2, n, longest, 2), -torch.inf)
    text_of = np.repeat(np.arange(n), LENGTHS)
    starts = np.cumsum([0, *LENGTHS[:-1]])
    for row, token in enumerate(chunk.tokens.tolist()):
        place = token - starts[text_of[token]]
        padded[0, text_of[token], place] = ours[row].detach()
        padded[1, text_of[token], place] = base[row]
    q, p = (torch.softmax(side / TEMPERATURE, dim=1) for side in padded)
    terms = torch.where(p > 0, p * (p.log() - q.log()), torch.zeros(()))
    expected = TEMPERATURE**2 * float(terms.sum()) / 2  # the mean of start and end
    found = float(distance("span", ours, base, chunk).detach())
    assert found == pytest.approx(expected, rel=1e-5)


def test_embeddings_are_as_far_as_their_angles_and_similarities():
    ours, base = answers(6, 8)

    def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
        dot = sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))
        return dot / math.sqrt(sum(x * x for x in a.tolist()) * sum(y * y for y in b.tolist()))

    turned = sum(1 - cosine(a, b) for a, b in zip(ours, base, strict=True))
    apart = sum(
        (cosine(ours[i], ours[j]) - cosine(base[i], base[j])) ** 2
        for i in range(6)
        for j in range(6)
    )
    found = float(distance("embedding", ours, base, chunk_of()).detach())
    assert found == pytest.approx(turned + apart / 6, rel=1e-4)


def test_the_length_of_an_embedding_does_not_count():
    ours, base = answers(6, 8)
    found = distance("embedding", ours, base, chunk_of())
    assert torch.allclose(distance("embedding", 3 * ours, base / 7, chunk_of()), found, rtol=1e-5)


WIDTHS = {"choice": 3, "tags": 4, "span": 2, "embedding": 8, "hidden token": 9, "number": 1}


@pytest.mark.parametrize("answer", [*WIDTHS, "labels"])
def test_the_gradient_is_zero_where_the_answers_are_the_base_s(answer):
    chunk = chunk_of()
    n = chunk.n_tokens if answer in ("tags", "span", "hidden token") else len(LENGTHS)
    ours, other = answers(n, WIDTHS.get(answer, 3))
    same = ours.detach().clone()
    loss = distance(answer, ours, same, chunk)
    loss.backward()
    assert float(ours.grad.abs().max()) < 1e-6
    if answer != "labels":  # a cross-entropy isn't 0 there, but least
        assert abs(float(loss.detach())) < 1e-5
    ours.grad = None
    distance(answer, ours, other, chunk).backward()
    assert float(ours.grad.abs().max()) > 1e-2


@pytest.mark.parametrize("answer", ["choice", "span"])
def test_half_precision_answers_are_compared_in_full(answer):
    chunk = chunk_of()
    ours, base = answers(chunk.n_tokens if answer == "span" else 6, 2)
    halved = distance(answer, ours.detach().half(), base, chunk)
    assert halved.dtype == torch.float32
    assert float(halved) == pytest.approx(
        float(distance(answer, ours.detach(), base, chunk)), rel=1e-2
    )
