"""Pre-train a small masked-LM encoder from plain text, on a CPU, in hours.

A vocabulary is made from the text, the text becomes one stream of tokens, and a shallow model is
trained on short rows, stacked (3 → 6 → 12 layers) and trained on, at last on long rows; or a masked
LM that exists is trained on. What a step does depends on its number and the seed: a run that was
killed goes on to the same weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microtome.edits.depth import MOST_SHARED_LAYERS
from microtome.errors import RequestError
from microtome.models.configuration import SIZES

if TYPE_CHECKING:
    from microtome.training.pretraining.schedule import Stage

FAMILIES = ("bert", "albert")
# What could be loaded again, and for ALBERT what can be grown.
MOST_LAYERS = {"bert": SIZES["layers"][1], "albert": MOST_SHARED_LAYERS}
WIDEST = SIZES["width"][1]
VOCABULARIES = (32, SIZES["vocabulary"][1])


@dataclass(frozen=True, kw_only=True)
class PretrainRequest:
    """What is asked for. `hours` becomes steps once, by measuring; `stages` states them outright.

    `out` gets the finished model; `out` + `.pretraining` holds vocabulary, tokens, plan, log and
    checkpoint, and is where a second call goes on.
    """

    text: tuple[Path, ...]
    out: Path
    start: str | None = None  # a masked LM to go on from; it decides family, shape and vocabulary
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
    grow: bool = True
    warm_start: bool = True  # word embeddings from neighbour counts, instead of chance
    summary_words: int = 4  # tokens of its row that [CLS] must name; 0: it is asked for nothing
    length: int = 64
    n_rows: int = 64
    extra_text: tuple[Path, ...] = ()  # joins at full depth, as each stage's `extra` says
    heldout_share: float = 0.01
    n_heldout_rows: int = 512  # rows that are scored
    seed: int = 0
    threads: int | None = None
    matrix_rate: float = 0.02
    matrix_decay: float = 0.3
    other_rate: float = 3e-3
    checkpoint_seconds: float = 300.0
    log_steps: int = 200
    license: str = ""
    finetuning_rate: float | None = None  # named in the card; None: what suits the width

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise RequestError(f"family {self.family!r} given, bert or albert wanted")
        most = MOST_LAYERS[self.family]
        if not 1 <= self.layers <= most:
            raise RequestError(f"{self.layers} layers given, 1 to {most} wanted")
        widths = (self.width, self.embedding_width)
        if not all(2 <= width <= WIDEST and width % 2 == 0 for width in widths):
            raise RequestError(
                f"width {self.width} with embeddings of {self.embedding_width} given, even numbers"
                f" from 2 to {WIDEST:,} wanted"
            )
        if self.width % self.n_heads:
            raise RequestError(f"width {self.width} can't be shared by {self.n_heads} heads")
        fewest, largest = VOCABULARIES
        if not fewest <= self.vocabulary <= largest:
            raise RequestError(
                f"a vocabulary of {self.vocabulary} given, {fewest} to {largest:,} word pieces"
                " wanted"
            )
        self._check_work()

    def _check_work(self) -> None:
        if not (0 < self.hours < math.inf and 0 < self.heldout_share < 0.5):
            raise RequestError(
                f"{self.hours} hours and a held-out share of {self.heldout_share} given, more than"
                " 0, and between 0 and 0.5 wanted"
            )
        if not 8 <= self.length <= self.positions:
            raise RequestError(f"rows of {self.length} given, 8 to {self.positions} tokens wanted")
        shortest = min([self.length, *(stage.length for stage in self.stages or ())])
        if not 0 <= self.summary_words < shortest - 2:
            raise RequestError(
                f"{self.summary_words} summary words given, 0 or more and fewer than the"
                f" {shortest - 2} tokens of a row wanted"
            )

    @property
    def n_heads(self) -> int:
        """Attention heads."""
        wanted = max(1, self.width // 32)
        return self.heads or next(n for n in range(wanted, 0, -1) if self.width % n == 0)

    @property
    def embedding_width(self) -> int:
        """Width of the word embeddings."""
        return self.embedding or (min(128, self.width) if self.family == "albert" else self.width)

    @property
    def card_rate(self) -> float:
        """The learning rate for fine-tuning that the card names."""
        return self.finetuning_rate or rate_for(self.width)

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the weights, beside the text and the plan."""
        return {
            "start": self.start_hash or None,
            "family": self.family,
            "layers": self.layers,
            "width": self.width,
            "heads": self.n_heads,
            "embedding": self.embedding_width,
            "positions": self.positions,
            "vocabulary": self.vocabulary,
            "lowercase": self.lowercase,
            "seed": self.seed,
            "warm_start": self.warm_start,
            "summary_words": self.summary_words,
            "extra_text": [path.name for path in self.extra_text],
            "heldout_share": self.heldout_share,
            "matrix_rate": self.matrix_rate,
            "matrix_decay": self.matrix_decay,
            "other_rate": self.other_rate,
            "hours": None if self.stages else self.hours,
        }

    @property
    def work(self) -> Path:
        """Where everything but the finished model lies."""
        return self.out.with_name(self.out.name + ".pretraining")


@dataclass(frozen=True)
class Progress:
    """One line of the log: where a run is, and how good the model is on held-out text."""

    step: int
    n_steps: int
    layers: int
    tokens: int
    seconds: float
    loss: float
    heldout: dict[str, float]
    curve: tuple[float, ...] = field(default=())


@dataclass(frozen=True)
class PretrainResult:
    """The finished model's folder and its figures."""

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
    layers, found, width = text.lower().replace("×", "x").partition("x")
    if not (found and layers.isdecimal() and width.isdecimal()):
        raise RequestError(f"shape {text!r} given, LAYERSxWIDTH wanted", "for example 12x128")
    return int(layers), int(width)


def rate_for(width: int) -> float:
    """A learning rate for fine-tuning, between what suits width 128 (3e-4) and 768 (2e-5)."""
    return float(f"{3e-4 * (128 / width) ** 1.5:.0e}")


def pretrain(
    request: PretrainRequest, *, progress: Callable[[Progress], None] = lambda _: None
) -> PretrainResult:
    """Pre-train as asked, from the last checkpoint where there is one; write the model to `out`."""
    from microtome.training.pretraining.run import carry_out

    return carry_out(request, progress)
