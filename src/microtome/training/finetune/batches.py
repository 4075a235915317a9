"""How many steps a training takes, which rows are in each, and where the epochs end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from microtome.observe.texts import IntArray
from microtome.training.recipe import Recipe


@dataclass(frozen=True)
class Batches:
    """The batches of a whole training, in their order."""

    n_rows: int
    batch_size: int
    n_steps: int
    epochs: int

    @classmethod
    def of(cls, n_rows: int, recipe: Recipe) -> Batches:
        """``epochs`` passes over the rows, or the number of steps that the recipe fixes."""
        n_steps = recipe.steps or recipe.epochs * math.ceil(n_rows / recipe.batch_size)
        return cls(n_rows, recipe.batch_size, n_steps, min(recipe.epochs, n_steps))

    def last_step(self, epoch: int) -> int:
        """How many steps are done when ``epoch`` is."""
        return (epoch + 1) * self.n_steps // self.epochs

    def steps_of(self, epoch: int) -> range:
        """The steps of one epoch."""
        return range(self.last_step(epoch - 1), self.last_step(epoch))

    def rows_of(self, step: int, seed: int) -> IntArray:
        """The rows of a step: each pass over the data has an order of its own."""
        per_pass = math.ceil(self.n_rows / self.batch_size)
        number, place = divmod(step, per_pass)
        order = _order(self.n_rows, seed, number)
        return order[place * self.batch_size : (place + 1) * self.batch_size]


@lru_cache(maxsize=2)
def _order(n_rows: int, seed: int, number: int) -> IntArray:
    return np.random.default_rng([seed, number]).permutation(n_rows)
