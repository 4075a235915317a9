"""Edits that change weights and leave the order of the layers alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, SupportsFloat, SupportsIndex

from microtome.edits.arguments import (
    HeadArgument,
    LayerArgument,
    as_edit_error,
    head_patterns,
    layer_set,
    one_of,
    positive_std,
    seed_number,
    whole_number,
)
from microtome.edits.depth import as_arguments, meant_layers
from microtome.edits.edit import Edit, Option
from microtome.errors import EditError
from microtome.values import Head, HeadPattern

# Singh et al., section 4.3: a truncated normal with σ = 0.02.
DEFAULT_STD = 0.02
PARTS = ("weights", "all")
WAYS = ("uniform", "zero")


@dataclass(frozen=True, init=False, repr=False)
class Reinit(Edit):
    """Fresh weights for some layers, from a normal of ``std`` that is cut at ±2 ``std``.

    ``parts="weights"`` draws the matrices of the linear projections; ``"all"`` also resets biases
    and norms. ``Reinit(top=4, seed=0)`` renews the last four layers; a layer's draw depends on the
    seed and the layer alone.
    """

    name: ClassVar[str] = "reinit"

    layers: tuple[int, ...]
    top: int | None
    bottom: int | None
    seed: int
    std: float
    parts: str

    def __init__(
        self,
        *layers: LayerArgument,
        top: SupportsIndex | None = None,
        bottom: SupportsIndex | None = None,
        seed: SupportsIndex = 0,
        std: SupportsFloat = DEFAULT_STD,
        parts: str = "weights",
    ) -> None:
        if (bool(layers) + (top is not None) + (bottom is not None)) != 1:
            raise EditError(
                "expected one of layers, top= and bottom=",
                "write reinit(3, 7), reinit(top=4) or reinit(bottom=4)",
            )
        self._set(
            layers=layer_set(layers) if layers else (),
            top=None if top is None else whole_number(top, "top"),
            bottom=None if bottom is None else whole_number(bottom, "bottom"),
            seed=seed_number(seed),
            std=positive_std(std),
            parts=one_of(parts, "parts", PARTS),
        )

    def layers_in(self, n_layers: int) -> tuple[int, ...]:
        """The layers that are meant on a model of ``n_layers`` layers, ascending."""
        return meant_layers(self.layers, {"top": self.top, "bottom": self.bottom}, n_layers)

    def listed(self) -> tuple[int | str, ...]:
        """The layers, as ranges."""
        return as_arguments(self.layers)

    def options(self) -> dict[str, Option]:
        """The side, the seed, and what isn't the default."""
        shown = {"top": self.top, "bottom": self.bottom, "seed": self.seed}
        options: dict[str, Option] = {k: v for k, v in shown.items() if v is not None}
        if self.std != DEFAULT_STD:
            options["std"] = self.std
        if self.parts != PARTS[0]:
            options["parts"] = self.parts
        return options


@dataclass(frozen=True, repr=False)
class Randomize(Edit):
    """Every weight drawn again, from the initialiser of the model."""

    name: ClassVar[str] = "randomize"

    seed: int = 0

    def __post_init__(self) -> None:
        self._set(seed=seed_number(self.seed))

    def options(self) -> dict[str, Option]:
        """The seed."""
        return {"seed": self.seed}


@dataclass(frozen=True, init=False, repr=False)
class Disable(Edit):
    """Heads that no longer choose: attention 1/L over the real tokens, or no output at all.

    ``Disable("3.7", "5.*")`` is head 7 of layer 3 and all of layer 5; ``how="zero"`` silences the
    output instead.
    """

    name: ClassVar[str] = "disable"

    patterns: tuple[HeadPattern, ...]
    how: str

    def __init__(self, *heads: HeadArgument, how: str = "uniform") -> None:
        self._set(patterns=head_patterns(heads), how=one_of(how, "how", WAYS))

    def heads_in(self, n_layers: int, n_heads: int) -> tuple[Head, ...]:
        """The heads that are meant on a model of this size, sorted, each once."""
        with as_edit_error():
            expanded = [pattern.expand(n_layers, n_heads) for pattern in self.patterns]
        return tuple(sorted({head for heads in expanded for head in heads}))

    def listed(self) -> tuple[int | str, ...]:
        """The heads."""
        return tuple(str(pattern) for pattern in self.patterns)

    def options(self) -> dict[str, Option]:
        """``how``, where it isn't the default."""
        return {} if self.how == WAYS[0] else {"how": self.how}


@dataclass(frozen=True, repr=False)
class Unshare(Edit):
    """ALBERT: a copy of the shared layer for every depth; afterwards layers are edited singly."""

    name: ClassVar[str] = "unshare"
