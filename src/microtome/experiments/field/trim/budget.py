"""How many texts and steps the minutes are, from measured times; no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from microtome.errors import DataError

CONTENDERS = 3  # of a size, so many are healed for a while before one is chosen
FIRST_ROUND = 0.1  # of a size's steps, for each contender
LEAST_TEXTS = 16
MOST_PASSES = 20  # over the texts: what time is left after them isn't used
LEAST_FIRST_ROUND = 10  # steps; fewer tell nothing, and the best of the screening is healed at once


@dataclass(frozen=True)
class Budget:
    """How many texts the base answers, and how many steps each size learns."""

    n_texts: int
    steps: Mapping[int, int]


@dataclass(frozen=True)
class Times:
    """Seconds that the base takes to answer a text, and a step takes, by the number of layers."""

    per_text: float
    per_step: Mapping[int, float]

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> Times:
        """As a trial stored them."""
        steps = {int(size): seconds for size, seconds in summary["seconds_per_step"].items()}
        return cls(summary["seconds_per_text"], steps)


def check_enough(n_texts: int) -> None:
    """Refuse texts that are too few to learn from."""
    if n_texts < LEAST_TEXTS:
        raise DataError(
            f"expected at least {LEAST_TEXTS} texts to heal on, got {n_texts}",
            "name more: --text FILE, one text per line",
        )


def budget_of(request: Mapping[str, Any], times: Times | None, n_available: int) -> Budget:
    """What a request's minutes, or steps, come to.

    Every size gets the same time, so that the smallest, which has the most to learn, gets the most
    steps. A text that no step reads isn't answered.
    """
    check_enough(n_available)
    sizes, batch = request["sizes"], min(request["batch_size"], n_available)
    if request["steps"] is not None:
        n_texts = min(n_available, request["steps"] * batch)
        return Budget(n_texts, dict.fromkeys(sizes, request["steps"]))
    assert times is not None  # minutes are calibrated
    seconds = 60 * request["minutes"]
    fastest = min(times.per_step[size] for size in sizes)
    # A size's seconds, if the base answers a new text for every place in its batches.
    each = seconds / (len(sizes) + batch * times.per_text / fastest)
    n_texts = int(each / fastest) * batch
    if n_texts > n_available:
        n_texts = n_available
        each = max(each, (seconds - n_available * times.per_text) / len(sizes))
    n_texts = max(batch, n_texts)
    most = MOST_PASSES * -(-n_texts // batch)
    steps = {size: min(most, max(1, int(each / times.per_step[size]))) for size in sizes}
    return Budget(n_texts, steps)


def rounds(n_steps: int, n_candidates: int) -> tuple[int, int, int]:
    """How many contend, for how many steps each, and how many the best of them takes after that."""
    first = int(FIRST_ROUND * n_steps)
    contend = min(CONTENDERS, n_candidates)
    if contend < 2 or first < LEAST_FIRST_ROUND:
        return 1, 0, n_steps
    return contend, first, n_steps - contend * first
