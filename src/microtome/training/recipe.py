"""How a model is fine-tuned, as one frozen value; no torch here."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from microtome.errors import RequestError
from microtome.models.front_matter import learning_rate_of
from microtome.tasks.task import Task

Freeze = Literal["embeddings", "encoder"] | int | None
"""``embeddings``; ``encoder`` (everything below the head); n: embeddings and the first n layers."""

Keep = Literal["last", "best"]
Precision = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The hyper-parameters of a fine-tuning; the defaults are the papers' for classification.

    ``batch_size`` is the effective one: it stays what it is when less fits into memory.
    ``micro_batch_size`` is how many rows are computed at once (None: all of them). ``steps`` fixes
    the number of updates, whatever the number of rows; they are scored in ``epochs`` stretches.
    ``warmup`` is a share of the steps. ``layerdrop`` is the chance that a layer is left out of a
    step (Fan et al. 2019). ``keep``: the weights of the last epoch, or of the best one on dev.
    """

    learning_rate: float = 2e-5
    batch_size: int = 32
    epochs: int = 3
    steps: int | None = None
    warmup: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0
    max_length: int = 128
    stride: int | None = None
    micro_batch_size: int | None = None
    layerdrop: float = 0.0
    freeze: Freeze = None
    keep: Keep = "last"
    precision: Precision = "auto"

    def __post_init__(self) -> None:
        _check_number("learning_rate", self.learning_rate, above=0)
        _check_number("clip", self.clip, above=0)
        _check_number("weight_decay", self.weight_decay, at_least=0)
        _check_number("warmup", self.warmup, at_least=0, at_most=1)
        _check_number("layerdrop", self.layerdrop, at_least=0, at_most=0.99)
        for name in ("batch_size", "epochs", "max_length"):
            _check_count(name, getattr(self, name))
        for name in ("steps", "micro_batch_size"):
            if getattr(self, name) is not None:
                _check_count(name, getattr(self, name))
        if not _is_freeze(self.freeze):
            raise RequestError(
                f"freeze={self.freeze!r} given",
                "wanted: embeddings, encoder, or a number of layers",
            )
        if self.keep not in ("last", "best"):
            raise RequestError(f"keep={self.keep!r} given", "wanted: last or best")
        if self.precision not in ("auto", "float32", "bfloat16"):
            raise RequestError(
                f"precision={self.precision!r} given", "wanted: auto, float32 or bfloat16"
            )

    def but(self, **changes: Any) -> Recipe:  # noqa: ANN401  # checked by the constructor
        """This recipe with some settings changed; a setting of None is left as it is."""
        return replace(
            self, **{name: value for name, value in changes.items() if value is not None}
        )

    def as_json(self) -> dict[str, object]:
        """The settings by name."""
        return asdict(self)


def recipe_for(task: Task, model_folder: Path | None = None) -> Recipe:
    """The papers' recipe for ``task``; the learning rate is the model card's where it names one."""
    own = task.recipe
    rate = None if model_folder is None else learning_rate_of(model_folder)
    return Recipe(
        learning_rate=rate or own.learning_rate,
        batch_size=own.batch_size,
        epochs=own.epochs,
        max_length=own.max_length,
        stride=own.stride,
    )


def _is_freeze(value: object) -> bool:
    if isinstance(value, bool):
        return False
    return value in (None, "embeddings", "encoder") or (isinstance(value, int) and value >= 0)


def _check_count(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise RequestError(f"{name} {value!r} given, a whole number from 1 on wanted")


def _check_number(
    name: str,
    value: float,
    *,
    above: float | None = None,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> None:
    good = math.isfinite(value) and at_least <= value <= at_most
    if good and (above is None or value > above):
        return
    low = f"above {above:g}" if above is not None else f"from {at_least:g} on"
    high = "" if at_most == math.inf else f", at most {at_most:g}"
    raise RequestError(f"{name} {value!r} given, a number {low}{high} wanted")
