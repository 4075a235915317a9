"""Stages that grow in depth, each with its own rates, and the learning rate by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from microtome.training.mlm.request import Schedule, Stage


@dataclass(frozen=True, kw_only=True)
class GrownStage(Stage):
    """A stage of a model with ``layers`` layers."""

    layers: int
    extra: float = 0.0  # the share of rows from the extra text
    candidates: int = 0  # tokens compared with the true one; 0: the whole vocabulary
    rate: float = 1.0  # of the peak learning rates


@dataclass(frozen=True)
class GrownSchedule(Schedule):
    """The rate rises over ``warm_up`` steps, over ``rewarm`` after each growth, and falls at last.

    ``decay`` steps take it down to nearly 0.
    """

    stages: tuple[GrownStage, ...]
    warm_up: int = field(kw_only=True)
    decay: int = field(kw_only=True)
    rewarm: int = field(kw_only=True)

    @classmethod
    def of(cls, stages: Sequence[GrownStage]) -> GrownSchedule:
        """200 steps up at most, the last fifth down."""
        n_steps = sum(stage.steps for stage in stages)
        warm_up = min(200, max(1, n_steps // 10))
        return cls(
            tuple(stages), warm_up=warm_up, decay=max(1, n_steps // 5), rewarm=min(50, warm_up)
        )

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> GrownSchedule:
        """From ``plan.json``, or from the ``plan`` in an embedded model's ``pretraining.json``."""
        return cls(**{**value, "stages": tuple(GrownStage(**stage) for stage in value["stages"])})

    def stage(self, step: int) -> GrownStage:
        return self.stages[self.at(step)[0]]

    def at(self, step: int) -> tuple[int, int]:
        """The number of a step's stage, and the step's number within it."""
        for number, stage in enumerate(self.stages):
            if step < stage.steps:
                return number, step
            step -= stage.steps
        raise IndexError("the schedule has no such step")

    def row_step(self, step: int) -> int:
        """How many steps before this one read rows of the same shape: its place in their order."""
        number, within = self.at(step)
        current = self.stages[number]
        return within + sum(
            stage.steps for stage in self.stages[:number] if same_rows(stage, current)
        )

    def factor(self, step: int) -> float:
        """The share of the peak learning rates at a step: up, level, down to nearly 0."""
        number, within = self.at(step)
        rising = min(1.0, (step + 1) / max(1, self.warm_up))
        if number and self.stages[number].layers != self.stages[number - 1].layers:
            rising = min(1.0, (within + 1) / max(1, self.rewarm))
        falling = min(1.0, (self.n_steps - step) / max(1, self.decay))
        return rising * falling * self.stages[number].rate


def same_rows(one: GrownStage, other: GrownStage) -> bool:
    """Whether two stages read the same rows, so that the second continues where the first ended."""
    return (one.length, one.n_rows, one.extra) == (other.length, other.n_rows, other.extra)


def depths_to(n_layers: int) -> tuple[int, ...]:
    """The depths of progressive stacking, each twice the one before: 12 → 3, 6, 12."""
    depths = [n_layers]
    while depths[0] % 2 == 0 and depths[0] >= 6:
        depths.insert(0, depths[0] // 2)
    return tuple(depths)


def rate_of(n_layers: int) -> float:
    """The share of the peak rates that a depth bears: a stack of 12 fell back to guessing at 1."""
    return min(1.0, 3 / n_layers)
