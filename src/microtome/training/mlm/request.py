"""What a pre-training is asked for, its schedule, and its result; no torch here.

A schedule is made once, from hours and measured speed, then stored and never changed by the clock:
what a step does depends on its number and the seed alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from microtome.edits.depth import MOST_SHARED_LAYERS
from microtome.errors import RequestError
from microtome.models.configuration import SIZES

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


FAMILIES = ("bert", "albert")
# What could be loaded again, and for ALBERT what can be extended.
MOST_LAYERS = {"bert": SIZES["layers"][1], "albert": MOST_SHARED_LAYERS}
WIDEST = SIZES["width"][1]
VOCABULARIES = (32, SIZES["vocabulary"][1])
SETTINGS = (
    "family", "layers", "width", "positions", "vocabulary", "lowercase", "seed", "heldout_share",
    "learning_rate",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PretrainRequest:
    """Text in, a masked LM out.

    ``hours`` become numbers of steps once, by measuring; ``stages`` states them outright. ``out``
    gets the finished model. ``out`` + ``.pretraining`` holds vocabulary, tokens, plan, log and
    checkpoint, and is where a second call with the same request resumes.

    Example: ``PretrainRequest(text=(Path("corpus.txt"),), out=Path("mine"), hours=2)``
    """

    text: tuple[Path, ...]
    out: Path
    start: str | None = None  # a masked LM to train on; it decides family, shape and vocabulary
    start_hash: str = ""  # of its content, filled in
    family: str = "bert"
    layers: int = 12
    width: int = 128
    heads: int | None = None  # None: one per 32 of width, or fewer where they don't divide it
    embedding: int | None = None  # ALBERT's narrow embeddings; None: 128, or the width if smaller
    vocabulary: int = 8192
    positions: int = 512
    lowercase: bool = True
    hours: float = 2.0
    stages: tuple[Stage, ...] | None = None
    length: int = 64  # tokens of a row, until the last tenth of the time
    n_rows: int = 16  # in a step
    heldout_share: float = 0.01
    n_heldout_rows: int = 512  # rows that are scored for the log
    seed: int = 0
    threads: int | None = None
    learning_rate: float | None = None  # the peak; None: what suits the width, or the start
    checkpoint_seconds: float = 300.0
    log_steps: int = 200
    license: str = ""
    finetuning_rate: float | None = None  # named in the card; None: what suits the width

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise RequestError(f"family must be bert or albert, got {self.family!r}")
        _check("layers", self.layers, 1, MOST_LAYERS[self.family])
        for name, width in (("width", self.width), ("embedding", self.embedding_width)):
            _check(name, width, 2, WIDEST)
            if width % 2:
                raise RequestError(f"{name} must be even, got {width}")
        if self.width % self.n_heads:
            raise RequestError(f"width {self.width} can't be divided among {self.n_heads} heads")
        _check("vocabulary", self.vocabulary, *VOCABULARIES)
        if not 0 < self.hours < math.inf:
            raise RequestError(f"hours must be a number above 0, got {self.hours}")
        if not 0 < self.heldout_share < 0.5:
            raise RequestError(f"heldout_share must be between 0 and 0.5, got {self.heldout_share}")
        _check("length", self.length, 8, self.positions)

    @property
    def n_heads(self) -> int:
        """Attention heads."""
        most = max(1, self.width // 32)
        return self.heads or next(n for n in range(most, 0, -1) if self.width % n == 0)

    @property
    def embedding_width(self) -> int:
        """Width of the word embeddings."""
        return self.embedding or (min(128, self.width) if self.family == "albert" else self.width)

    @property
    def peak_rate(self) -> float:
        """The peak learning rate: a model that has learnt something takes smaller steps."""
        if self.learning_rate is not None:
            return self.learning_rate
        if self.start is not None:
            return self.card_rate
        return min(6e-4, 6e-4 * 128 / self.width)

    @property
    def card_rate(self) -> float:
        """The learning rate for fine-tuning that the card names."""
        return self.finetuning_rate or finetuning_rate_for(self.width)

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the weights, apart from the text and the plan."""
        return {
            **{name: getattr(self, name) for name in SETTINGS},
            "start": self.start_hash or None,
            "heads": self.n_heads,
            "embedding": self.embedding_width,
            "hours": None if self.stages else self.hours,
        }

    @property
    def work(self) -> Path:
        """Where everything but the finished model is."""
        return self.out.with_name(self.out.name + ".pretraining")


@dataclass(frozen=True)
class LogLine:
    """Where a run is, and how good the model is on held-out text."""

    step: int
    n_steps: int
    tokens: int
    seconds: float
    loss: float
    heldout: dict[str, float]


@dataclass(frozen=True)
class PretrainResult:
    """The finished model's folder and its figures.

    ``heldout`` has the scores on text never trained on; ``curve`` the share of tokens that the head
    reads back at each depth, and ``control`` the same with fresh weights in all layers.
    """

    out: Path
    steps: int
    tokens: int
    seconds: float
    heldout: dict[str, float]
    curve: tuple[float, ...]
    control: tuple[float, ...]

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "out": str(self.out),
            "steps": self.steps,
            "tokens": self.tokens,
            "seconds": round(self.seconds, 1),
            "heldout": self.heldout,
            "depths": [
                {"depth": depth, "accuracy": accuracy, "control": control}
                for depth, (accuracy, control) in enumerate(
                    zip(self.curve, self.control, strict=True)
                )
            ],
        }


def parse_shape(text: str) -> tuple[int, int]:
    """`12x128` → (12 layers, width 128)."""
    layers, times, width = text.lower().replace("×", "x").partition("x")
    if not (times and layers.isdecimal() and width.isdecimal()):
        raise RequestError(f"shape must be LAYERSxWIDTH, got {text!r}", "for example 12x128")
    return int(layers), int(width)


def finetuning_rate_for(width: int) -> float:
    """A learning rate for fine-tuning, between what suits width 128 (3e-4) and 768 (2e-5)."""
    return float(f"{3e-4 * (128 / width) ** 1.5:.0e}")


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise RequestError(f"{name} must be {least} to {most:,}, got {value:,}")
