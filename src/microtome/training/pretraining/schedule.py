"""The plan of a pre-training run: stages that grow in depth, and the learning rate by step.

A plan is made once, from hours and measured speed, then stored and never changed by the clock: what
a step does depends on its number alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from microtome.errors import RequestError


@dataclass(frozen=True)
class Stage:
    """`steps` updates of a model with `layers` layers, on `n_rows` rows of `length` tokens."""

    layers: int
    length: int
    n_rows: int
    masked: float  # the share of tokens that is asked for
    steps: int = 0
    extra: float = 0.0  # the share of rows from the extra text
    candidates: int = 0  # tokens compared with the true one; 0: the whole vocabulary
    rate: float = 1.0  # of the peak learning rates

    @property
    def tokens(self) -> int:
        """Tokens in this stage's rows, special ones included."""
        return self.steps * self.n_rows * self.length


@dataclass(frozen=True)
class Plan:
    """The stages in order; the rate rises over `warm_up` steps and falls over the last `decay`."""

    stages: tuple[Stage, ...]
    warm_up: int
    decay: int
    rewarm: int = 0  # after each growth

    @property
    def n_steps(self) -> int:
        """Steps of all stages."""
        return sum(stage.steps for stage in self.stages)

    def at(self, step: int) -> tuple[int, int]:
        """The stage of a step, and the step's number within it."""
        for number, stage in enumerate(self.stages):
            if step < stage.steps:
                return number, step
            step -= stage.steps
        raise IndexError("the plan has no such step")

    def row_step(self, step: int) -> int:
        """How many steps before this one read rows of the same shape: its place in their order."""
        number, within = self.at(step)
        own = self.stages[number]
        return within + sum(stage.steps for stage in self.stages[:number] if same_rows(stage, own))

    def factor(self, step: int) -> float:
        """The share of the peak learning rates at a step: up, level, down to nearly 0."""
        number, within = self.at(step)
        rising = min(1.0, (step + 1) / max(1, self.warm_up))
        if number and self.stages[number].layers != self.stages[number - 1].layers:
            rising = min(1.0, (within + 1) / max(1, self.rewarm))
        falling = min(1.0, (self.n_steps - step) / max(1, self.decay))
        return rising * falling * self.stages[number].rate

    def as_json(self) -> dict[str, Any]:
        """For `plan.json` and the card."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Plan:
        """What :meth:`as_json` gave."""
        return cls(**{**value, "stages": tuple(Stage(**stage) for stage in value["stages"])})


def same_rows(one: Stage, other: Stage) -> bool:
    """Whether two stages read the same rows, so that the second goes on where the first ended."""
    return (one.length, one.n_rows, one.extra) == (other.length, other.n_rows, other.extra)


def depths_to(n_layers: int, *, grow: bool) -> tuple[int, ...]:
    """The depths of progressive stacking, each twice the one before: 12 → 3, 6, 12."""
    depths = [n_layers]
    while grow and depths[0] % 2 == 0 and depths[0] >= 6:
        depths.insert(0, depths[0] // 2)
    return tuple(depths)


def outline(
    n_layers: int,
    *,
    grow: bool,
    length: int,
    n_rows: int,
    long: int,
    extra: float = 0.0,
    candidates: int = 0,
) -> list[tuple[Stage, float]]:
    """Stages without steps, and the share of the time that each gets.

    Half of the time goes to the shallowest model, where a token is cheapest; the last tenth to long
    rows at full depth.
    """
    depths = depths_to(n_layers, grow=grow)
    early = [0.9] if len(depths) == 1 else [0.5, *[0.4 / (len(depths) - 1)] * (len(depths) - 1)]
    stages = [
        (Stage(depth, length, n_rows, masked=0.3, candidates=candidates, rate=rate(depth)), share)
        if depth < n_layers
        else (Stage(depth, length, n_rows, masked=0.2, extra=extra, rate=rate(depth)), share)
        for depth, share in zip(depths, early, strict=True)
    ]
    n_long = max(1, n_rows * length // long)
    last = Stage(n_layers, long, n_long, masked=0.15, extra=extra, rate=rate(n_layers))
    return [*stages, (last, 0.1)]


def rate(n_layers: int) -> float:
    """The share of the peak rates that a depth stands: a stack of 12 fell back to guessing at 1."""
    return min(1.0, 3 / n_layers)


def make_plan(
    outlined: Sequence[tuple[Stage, float]], *, seconds: float, per_step: Sequence[float]
) -> Plan:
    """Turn shares of `seconds` into steps, given the seconds that a step of each stage takes."""
    stages = []
    for (stage, share), cost in zip(outlined, per_step, strict=True):
        steps = max(1, math.floor(seconds * share / cost))
        stages.append(Stage(**{**asdict(stage), "steps": steps}))
    return plan_of(stages)


def plan_of(stages: Sequence[Stage]) -> Plan:
    """A plan of stages whose steps are known: 200 steps up at most, the last fifth down."""
    n_steps = sum(stage.steps for stage in stages)
    if n_steps < 1:
        raise RequestError(f"a plan of {n_steps} steps given, at least 1 wanted")
    warm_up = min(200, max(1, n_steps // 10))
    return Plan(tuple(stages), warm_up, decay=max(1, n_steps // 5), rewarm=min(50, warm_up))
