"""How many steps a pre-training takes, and on which rows; no torch here.

A schedule is made once, from hours and measured speed, then stored and never changed by the clock:
what a step does depends on its number and the seed alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from microtome.errors import RequestError

SHORT_MASKED, LONG_MASKED = 0.2, 0.15  # of the tokens
LONG_SHARE = 0.1  # of the time: rows as long as the position table


@dataclass(frozen=True)
class Stage:
    """`steps` updates on `n_rows` rows of `length` tokens; the share `masked` of them is masked."""

    length: int
    n_rows: int
    masked: float
    steps: int = 0


@dataclass(frozen=True)
class Schedule:
    """The stages of a run, in order."""

    stages: tuple[Stage, ...]

    def __post_init__(self) -> None:
        if self.n_steps < 1:
            raise RequestError(f"a schedule must have at least 1 step, got {self.n_steps}")

    @property
    def n_steps(self) -> int:
        """Steps of all stages."""
        return sum(stage.steps for stage in self.stages)

    def stage(self, step: int) -> Stage:
        """The stage that a step belongs to."""
        for stage in self.stages:
            if step < stage.steps:
                return stage
            step -= stage.steps
        raise IndexError("the schedule has no such step")

    def as_json(self) -> dict[str, Any]:
        """For `plan.json` and the card."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Schedule:
        """What :meth:`as_json` gave."""
        return cls(tuple(Stage(**stage) for stage in value["stages"]))


def outline(*, length: int, n_rows: int, positions: int) -> list[tuple[Stage, float]]:
    """Stages without steps, and the share of the time that each gets: short rows, then long ones.

    A token in a short row is cheaper, and most of what is learnt needs no more context.
    """
    n_long = max(1, n_rows * length // positions)
    return [
        (Stage(length, n_rows, SHORT_MASKED), 1 - LONG_SHARE),
        (Stage(positions, n_long, LONG_MASKED), LONG_SHARE),
    ]


def filled(
    outlined: Sequence[tuple[Stage, float]], *, seconds: float, per_step: Sequence[float]
) -> Schedule:
    """Turn shares of `seconds` into steps, given the seconds that a step of each stage takes."""
    stages = (
        replace(stage, steps=max(1, math.floor(seconds * share / cost)))
        for (stage, share), cost in zip(outlined, per_step, strict=True)
    )
    return Schedule(tuple(stages))
