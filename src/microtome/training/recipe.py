"""How a model is fine-tuned, and its seeds, as frozen values; no torch here."""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from microtome.errors import RequestError
from microtome.models.front_matter import learning_rate_of
from microtome.models.sentence_transformers.folder import sentence_folder
from microtome.tasks.task import Task

Freeze = Literal["embeddings", "encoder"] | int | None
"""``embeddings``; ``encoder`` (everything below the head); n: embeddings and the first n layers."""

Keep = Literal["last", "best"]
Precision = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The hyper-parameters of a fine-tuning; the defaults are the papers' for classification.

    Example: ``Recipe(learning_rate=1e-4, epochs=5)``

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
                f"freeze must be embeddings, encoder or a number of layers, got {self.freeze!r}"
            )
        if self.keep not in ("last", "best"):
            raise RequestError(f"keep must be last or best, got {self.keep!r}")
        if self.precision not in ("auto", "float32", "bfloat16"):
            raise RequestError(
                f"precision must be auto, float32 or bfloat16, got {self.precision!r}"
            )

    def but(self, **changes: Any) -> Recipe:  # noqa: ANN401  # checked by the constructor
        """This recipe with some settings changed; a setting of None is left as it is."""
        return replace(
            self, **{name: value for name, value in changes.items() if value is not None}
        )

    def n_updates(self, n_rows: int) -> int:
        """The updates that ``n_rows`` rows give in the recipe's epochs."""
        return math.ceil(n_rows / self.batch_size) * self.epochs

    def at_least(self, n_updates: int, n_rows: int) -> Recipe:
        """This recipe with ``n_updates`` updates where ``n_rows`` rows would give fewer.

        ``Recipe(batch_size=10).at_least(60, n_rows=100).steps`` is 60: ten updates an epoch are 30.
        """
        return self if self.n_updates(n_rows) >= n_updates else replace(self, steps=n_updates)

    def as_json(self) -> dict[str, object]:
        """The settings by name."""
        return asdict(self)


def recipe_for(task: Task, model_folder: Path | None = None) -> Recipe:
    """The papers' recipe for ``task``; the learning rate is the model card's where it names one.

    Texts to embed are cut at the length that the model's folder says, if it says one.

    Example: ``recipe_for(find_task("sst2"), Path("my-model")).but(epochs=5)``
    """
    usual = task.hyperparameters
    rate = None if model_folder is None else learning_rate_of(model_folder)
    length = None
    if model_folder is not None and task.kind in ("similarity", "retrieval"):
        folder = sentence_folder(model_folder)
        length = None if folder is None else folder.max_length
    return Recipe(
        learning_rate=rate or usual.learning_rate,
        batch_size=usual.batch_size,
        epochs=usual.epochs,
        max_length=length or usual.max_length,
        stride=usual.stride,
    )


def least_updates(task: Task, epochs: int | None, asked: int) -> int:
    """Updates at least: as many as ``asked``; what is usual for the task where nobody asked.

    Own data of a few hundred rows has too few updates in the papers' epochs to be learnt at all.
    """
    return asked or (task.hyperparameters.least_steps if epochs is None else 0)


def _is_freeze(value: object) -> bool:
    if isinstance(value, bool):
        return False
    return value in (None, "embeddings", "encoder") or (isinstance(value, int) and value >= 0)


def _check_count(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise RequestError(f"{name} must be a whole number, 1 or more, got {value!r}")


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
    bounds = f"above {above:g}" if above is not None else f"{at_least:g} or more"
    if at_most < math.inf:
        bounds = f"from {at_least:g} to {at_most:g}"
    raise RequestError(f"{name} must be {bounds}, got {value!r}")


@dataclass(frozen=True)
class Seeds:
    """One seed for each use, so that one can be changed without the others.

    A trial of a run hands in its own: ``Seeds(*(context.seed(n) for n in Seeds.NAMES))``.
    """

    NAMES = ("init", "data", "dropout")

    init: int
    data: int
    dropout: int

    @classmethod
    def of(cls, seed: int) -> Seeds:
        """All of them from one number."""
        return cls(*(derived(seed, name) for name in cls.NAMES))


def derived(*parts: int | str) -> int:
    """A number in 0 … 2³¹−1 that depends on nothing but ``parts``."""
    digest = hashlib.sha256(":".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
