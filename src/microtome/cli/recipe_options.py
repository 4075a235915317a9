"""The options of a training, spelled out once: every command that trains takes the same recipe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from microtome.cli import parameters as given
from microtome.cli.data_options import option_group

OPTIONS: dict[str, tuple[Any, Any]] = {
    "epochs": (given.Epochs, None),
    "batch_size": (given.BatchSize, None),
    "learning_rate": (given.LearningRate, None),
    "warmup": (given.Warmup, None),
    "weight_decay": (given.WeightDecay, None),
    "least_steps": (given.LeastSteps, 0),
    "max_length": (given.MaxLength, None),
}


def takes_recipe(command: Callable[..., None]) -> Callable[..., None]:
    """A command's parameter ``recipe: dict[str, Any]`` becomes the options of a training.

    A value is None where the task's own, the model card's or the papers' is meant.
    """
    return option_group(command, "recipe", OPTIONS, dict)
