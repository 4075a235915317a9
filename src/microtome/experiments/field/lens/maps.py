"""An affine map per depth, and how it is fitted: AdamW from 0 on cached states, stopped early."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from microtome.errors import Diverged
from microtome.experiments.field.lens.divergence import (
    divergence,
    feature_gradient,
    log_shares,
    row_slices,
)
from microtome.observe import Readout
from microtome.observe.texts import BoolArray, IntArray
from microtome.training.optimisation import Optimizer, rate_factor

BATCH = 64  # tokens of an update
LEARNING_RATE = 2e-3  # of states scaled to a mean square of 1
LOOKS = 10  # at the tokens to stop by, evenly over the steps
PATIENCE = 3  # looks without a smaller divergence, after which a depth is done
MOST_TO_STOP_BY = 512  # tokens
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class DepthMap:
    """h → h + A h + b."""

    weight: Tensor  # A (D, D)
    bias: Tensor  # b (D,)

    def __call__(self, states: Tensor) -> Tensor:
        """(n, D) → (n, D)."""
        return torch.addmm(states + self.bias, states, self.weight.mT)


@dataclass(frozen=True, eq=False)
class FittedMaps:
    """A map for each of some depths, and the divergence on the tokens to stop by at every look.

    A depth keeps the map of its best look; the losses of a depth that was done early are NaN after
    that.
    """

    maps: Mapping[int, DepthMap]
    steps: IntArray  # (looks,) updates before each look
    losses: NDArray[np.float64]  # (looks, depths), nats

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """As a trial stores them."""
        maps = self.maps.values()
        return {
            "depths": np.array(list(self.maps)),
            "weight": np.stack([one.weight.cpu().numpy() for one in maps]),
            "bias": np.stack([one.bias.cpu().numpy() for one in maps]),
            "steps": self.steps,
            "losses": self.losses,
        }

    @classmethod
    def of_arrays(cls, stored: Mapping[str, NDArray[np.generic]], device: str) -> FittedMaps:
        """What :meth:`arrays` gave."""
        maps = {
            int(depth): DepthMap(*(torch.from_numpy(part).to(device) for part in parts))
            for depth, *parts in zip(
                stored["depths"], stored["weight"], stored["bias"], strict=True
            )
        }
        losses: NDArray[np.float64] = stored["losses"].astype(np.float64)
        return cls(maps, stored["steps"].astype(np.int64), losses)


def fit_maps(
    readout: Readout,
    states: Mapping[int, Tensor],
    last: Tensor,
    to_stop_by: BoolArray,
    *,
    steps: int = 300,
    batch: int = BATCH,
    learning_rate: float = LEARNING_RATE,
    patience: int = PATIENCE,
    seed: int = 0,
    progress: Progress | None = None,
) -> FittedMaps:
    """Fit a map per depth, so that the readout says of its states what it says of ``last``.

    ``states`` are the same tokens' (n, D) at each depth, ``last`` (n, D) those whose distribution
    is wanted. The tokens ``to_stop_by`` (n,) aren't fitted to. Depths share batches and nothing
    else: each is fitted as if it were alone.

        fit_maps(readout, {3: cache[3]}, cache[-1], to_stop_by).maps[3]
    """
    fit = _Fit(readout, states, last, to_stop_by, learning_rate, seed)
    looks = sorted({round(steps * look / LOOKS) for look in range(LOOKS + 1)})
    batches = _batches(np.flatnonzero(~to_stop_by), batch, seed)
    for step in range(steps + 1):
        if step in looks:
            fit.look(step, patience)
            if progress is not None:
                progress(step, steps)
        if step == steps or not fit.active:
            break
        fit.update(next(batches), rate_factor(step, steps, 0.0), step)
    return fit.result()


class _Fit:
    """The maps under way, in states scaled so that one learning rate suits every family."""

    def __init__(
        self,
        readout: Readout,
        states: Mapping[int, Tensor],
        last: Tensor,
        to_stop_by: BoolArray,
        learning_rate: float,
        seed: int,
    ) -> None:
        self.readout, self.states, self.last = readout, states, last
        self.inner = {depth: 1 / _root_mean_square(own) for depth, own in states.items()}
        self.outer = _root_mean_square(last - last.mean(0))
        width = last.shape[1]
        self.parameters = {
            depth: (nn.Parameter(last.new_zeros(width, width)), nn.Parameter(last.new_zeros(width)))
            for depth in states
        }
        named = {
            f"{part}.{depth}": parameter
            for depth, pair in self.parameters.items()
            for part, parameter in zip(("weight", "bias"), pair, strict=True)
        }
        # Clipped together, depths would not be fitted as if alone.
        self.optimizer = Optimizer(
            named, learning_rate=learning_rate, weight_decay=0.0, clip=math.inf, betas=(0.9, 0.99)
        )
        rows = np.random.default_rng([seed, 2]).permutation(np.flatnonzero(to_stop_by))
        self.stopping = torch.from_numpy(rows[:MOST_TO_STOP_BY]).to(last.device)
        self.active = list(states)
        self.best = dict.fromkeys(states, (math.inf, 0))  # divergence, and at which look
        self.kept: dict[int, DepthMap] = {}
        self.steps: list[int] = []
        self.losses: list[dict[int, float]] = []

    def map_of(self, depth: int) -> DepthMap:
        """A depth's map as it is now, for states as they are."""
        weight, bias = self.parameters[depth]
        return DepthMap(weight * (self.outer * self.inner[depth]), bias * self.outer)

    def update(self, rows: IntArray, factor: float, step: int) -> None:
        """One step of all depths that aren't done."""
        taken = torch.from_numpy(rows).to(self.last.device)
        with torch.no_grad():
            wanted = log_shares(self.readout, self.readout.features(self.last[taken]))
        for depth in self.active:
            features = self.readout.features(self.map_of(depth)(self.states[depth][taken]))
            with torch.no_grad():
                gradient = feature_gradient(self.readout, features, wanted) / len(rows)
            pair = self.parameters[depth]
            # Asked for by name: nothing is computed for the readout's own weights.
            for parameter, slope in zip(
                pair, torch.autograd.grad(features, pair, gradient), strict=True
            ):
                parameter.grad = slope
        if not math.isfinite(self.optimizer.step(factor)):
            raise _diverged(step)

    @torch.no_grad()
    def look(self, step: int, patience: int) -> None:
        """Keep the maps that are better than before; depths that no longer improve are done."""
        maps = {depth: self.map_of(depth) for depth in self.active}
        losses = mean_divergences(
            self.readout,
            self.last[self.stopping],
            [maps[depth](self.states[depth][self.stopping]) for depth in self.active],
        )
        now = len(self.steps)
        self.steps.append(step)
        self.losses.append(dict(zip(self.active, losses.tolist(), strict=True)))
        for depth, loss in self.losses[-1].items():
            if not math.isfinite(loss):
                raise _diverged(step)
            if loss < self.best[depth][0]:
                self.best[depth] = (loss, now)
                self.kept[depth] = maps[depth]
        self.active = [depth for depth in self.active if now - self.best[depth][1] < patience]

    def result(self) -> FittedMaps:
        """The best map of each depth."""
        losses = [[look.get(depth, math.nan) for depth in self.states] for look in self.losses]
        return FittedMaps(self.kept, np.array(self.steps), np.array(losses))


@torch.no_grad()
def mean_divergences(
    readout: Readout, last: Tensor, states: Sequence[Tensor]
) -> NDArray[np.float64]:
    """KL(last || …) of every reading, mean over rows: (n, D), readings of (n, D) → (readings,)."""
    sums = np.zeros(len(states))
    for rows in row_slices(readout, len(last)):
        wanted = log_shares(readout, readout.features(last[rows]))
        for place, own in enumerate(states):
            given = log_shares(readout, readout.features(own[rows]))
            sums[place] += float(divergence(wanted, given).sum())
    return sums / max(1, len(last))


def _batches(rows: IntArray, size: int, seed: int) -> Iterator[IntArray]:
    """Rows in batches of one size without end, every row once before any comes again."""
    rng = np.random.default_rng([seed, 3])
    while True:
        order = rng.permutation(rows)
        for start in range(0, max(1, len(order) - size + 1), size):
            yield order[start : start + size]


def _root_mean_square(values: Tensor) -> float:
    return max(float(values.double().square().mean().sqrt()), 1e-6)


def _diverged(step: int) -> Diverged:
    return Diverged(f"the lens diverged at step {step}: its numbers are no longer finite")
