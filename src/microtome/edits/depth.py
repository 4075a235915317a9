"""Depth edits: each one is an order of layers, the source layer of every new position."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, SupportsIndex

from microtome.edits.arguments import (
    LayerArgument,
    check_layers,
    distinct_layers,
    layer_set,
    listed_layers,
    whole_number,
)
from microtome.edits.edit import Edit, Option
from microtome.errors import EditError
from microtome.values import LARGEST_NUMBER, format_ranges

# ALBERT applies the same layer at every depth: more of them cost time, not memory.
MOST_SHARED_LAYERS = 64


class DepthEdit(Edit, ABC):
    """An edit that copies, drops or moves whole layers."""

    def order(self, n_layers: int, *, first_copied: int = 0) -> tuple[int, ...]:
        """The source layer of every new position, on a model of ``n_layers`` layers.

        Layers below ``first_copied`` must stay first and single (ModernBERT's layer 0).
        """
        order = self._order(n_layers, first_copied)
        if not order:
            raise EditError(f"{self} would remove all {n_layers} layers", "keep at least one")
        self._check_fixed(order, first_copied)
        return order

    def count(self, n_layers: int, *, most: int = MOST_SHARED_LAYERS) -> int:
        """How many layers there are afterwards, where all of them share their weights (ALBERT)."""
        count = self._count(n_layers)
        if not 1 <= count <= most:
            raise EditError(f"{self} would give {count} layers", f"1 to {most} are possible")
        return count

    @abstractmethod
    def _order(self, n_layers: int, first_copied: int) -> tuple[int, ...]:
        """The order, before the checks that hold for all."""

    def _count(self, n_layers: int) -> int:
        return len(self._order(n_layers, 0))

    def _check_fixed(self, order: tuple[int, ...], first_copied: int) -> None:
        fixed = tuple(range(first_copied))
        moved = order[:first_copied] != fixed or any(i < first_copied for i in order[first_copied:])
        if moved:
            which = f"layer{'s' if first_copied > 1 else ''} {format_ranges(fixed)}"
            raise EditError(
                f"{self} would copy, move or remove {which}",
                f"{which} must stay first and single here: use layers from {first_copied} on",
            )


@dataclass(frozen=True, repr=False)
class Extend(DepthEdit):
    """To ``n_layers`` layers: the first ones duplicated once, each copy right after its original.

    ``Extend(15)`` turns 12 layers into 0,0,1,1,2,2,3 and so on. From N layers, K is possible where
    N ≤ K ≤ 2N; K = N is the identity.
    """

    name: ClassVar[str] = "extend"

    n_layers: int

    def __post_init__(self) -> None:
        self._set(n_layers=whole_number(self.n_layers, "layers"))

    def listed(self) -> tuple[int | str, ...]:
        """The number of layers."""
        return (self.n_layers,)

    def _order(self, n_layers: int, first_copied: int) -> tuple[int, ...]:
        most = 2 * n_layers - first_copied
        if not n_layers <= self.n_layers <= most:
            raise EditError(
                f"{self} doesn't fit a model of {n_layers} layers: "
                f"expected extend({n_layers}) to extend({most})",
                "remove(…) makes it smaller" if self.n_layers < n_layers else "",
            )
        copied = range(first_copied, first_copied + self.n_layers - n_layers)
        return _with_copies(n_layers, copied, times=1)

    def _count(self, n_layers: int) -> int:
        return self.n_layers


@dataclass(frozen=True, init=False, repr=False)
class Duplicate(DepthEdit):
    """Copies of single layers, right after their originals: 0-2 gives 0,0,1,1,2,2,3 and so on.

    ``Duplicate("0-2")`` and ``Duplicate(first=3)`` are the same on any model; ``times=2`` adds two
    copies of each.
    """

    name: ClassVar[str] = "duplicate"

    layers: tuple[int, ...]
    first: int | None
    last: int | None
    times: int

    def __init__(
        self,
        *layers: LayerArgument,
        first: SupportsIndex | None = None,
        last: SupportsIndex | None = None,
        times: SupportsIndex = 1,
    ) -> None:
        if (bool(layers) + (first is not None) + (last is not None)) != 1:
            raise EditError(
                "expected one of layers, first= and last=",
                "write duplicate(0-2), duplicate(first=3) or duplicate(last=3)",
            )
        hint = "times=2 adds two copies of each layer"
        self._set(
            layers=distinct_layers(layers, hint) if layers else (),
            first=None if first is None else whole_number(first, "first"),
            last=None if last is None else whole_number(last, "last"),
            times=whole_number(times, "times"),
        )

    def listed(self) -> tuple[int | str, ...]:
        """The layers, as ranges."""
        return as_arguments(self.layers)

    def options(self) -> dict[str, Option]:
        """The side, and how many copies where it isn't one."""
        shown = {"first": self.first, "last": self.last}
        options: dict[str, Option] = {k: v for k, v in shown.items() if v is not None}
        if self.times != 1:
            options["times"] = self.times
        return options

    def _order(self, n_layers: int, first_copied: int) -> tuple[int, ...]:
        copied = meant_layers(self.layers, {"first": self.first, "last": self.last}, n_layers)
        n_after = n_layers + len(copied) * self.times
        if n_after > LARGEST_NUMBER:
            raise EditError(
                f"{self} would give {n_after} layers", f"at most {LARGEST_NUMBER} are possible"
            )
        return _with_copies(n_layers, copied, times=self.times)


@dataclass(frozen=True, init=False, repr=False)
class LayersEdit(DepthEdit):
    """A depth edit whose arguments are layers alone: a set of them, unless it says otherwise."""

    layers: tuple[int, ...]

    def __init__(self, *layers: LayerArgument) -> None:
        self._set(layers=layer_set(layers))

    def listed(self) -> tuple[int | str, ...]:
        """The layers, as ranges."""
        return as_arguments(self.layers)

    def _order(self, n_layers: int, first_copied: int) -> tuple[int, ...]:
        check_layers(self.layers, n_layers)
        return self._order_of(n_layers)

    def _order_of(self, n_layers: int) -> tuple[int, ...]:
        """The order; the model has all the layers that are listed."""
        return self.layers


class Repeat(LayersEdit):
    """One block of layers again after itself: 3-5 gives 0,1,2,3,4,5,3,4,5,6 and so on."""

    name: ClassVar[str] = "repeat"

    def __init__(self, *layers: LayerArgument) -> None:
        block = listed_layers(layers)
        if block != tuple(range(block[0], block[0] + len(block))):
            raise EditError(
                f"expected one block of neighbouring layers, got {format_ranges(block)}",
                "write one range: repeat(3-5)",
            )
        self._set(layers=block)

    def _order_of(self, n_layers: int) -> tuple[int, ...]:
        after = self.layers[-1] + 1
        return (*range(after), *self.layers, *range(after, n_layers))


class Remove(LayersEdit):
    """Without these layers: ``Remove("10-11")`` leaves layers 0 to 9 of 12."""

    name: ClassVar[str] = "remove"

    def _order_of(self, n_layers: int) -> tuple[int, ...]:
        return tuple(layer for layer in range(n_layers) if layer not in self.layers)


class Keep(LayersEdit):
    """These layers only, in the model's order: ``Keep("0-5")`` is the lower half of 12."""

    name: ClassVar[str] = "keep"


class Order(LayersEdit):
    """The layers in exactly this order; one may occur several times, or not at all.

    Every other depth edit is such an order: on three layers ``Remove(1)`` is ``Order(0, 2)``.
    """

    name: ClassVar[str] = "order"

    def __init__(self, *layers: LayerArgument) -> None:
        self._set(layers=listed_layers(layers))

    def listed(self) -> tuple[int | str, ...]:
        """Every layer by itself: in an order, ranges would hide what happens."""
        return self.layers


def as_arguments(layers: tuple[int, ...]) -> tuple[int | str, ...]:
    """Layers as they are printed: ranges collapsed, single ones as numbers."""
    parts = format_ranges(layers).split(",") if layers else []
    return tuple(part if "-" in part else int(part) for part in parts)


def meant_layers(
    listed: tuple[int, ...], ends: Mapping[str, int | None], n_layers: int
) -> tuple[int, ...]:
    """The layers that are listed, or so many at an end: of ``ends``, one of the two counts."""
    for option, count in ends.items():
        if count is None:
            continue
        if count > n_layers:
            raise EditError(
                f"{option} must be at most {n_layers}, the number of layers, got {count}"
            )
        start = 0 if option in ("first", "bottom") else n_layers - count
        return tuple(range(start, start + count))
    check_layers(listed, n_layers)
    return listed


def _with_copies(n_layers: int, copied: range | tuple[int, ...], *, times: int) -> tuple[int, ...]:
    again = frozenset(copied)
    return tuple(layer for layer in range(n_layers) for _ in range(1 + times * (layer in again)))


MOST_LAYERS = 256  # deeper edits are refused: a slip or a bomb, not a model


@dataclass(frozen=True)
class DepthRules:
    """What a depth edit may do to a model. The defaults hold for layers that are free and alike."""

    shared: bool = False  # one set of weights applied at every depth: only the count can change
    first_copied: int = 0  # layers below this one are built differently: they stay first and single
    refusal: str = ""  # why no depth edit is possible at all


def new_order(edit: DepthEdit, n_layers: int, rules: DepthRules) -> tuple[int, ...]:
    """The source layer of every new layer; shared layers are all layer 0, applied again.

    new_order(parse("keep(0,2)").edits[0], 4, DepthRules())   →   (0, 2)
    """
    if rules.refusal:
        raise EditError(rules.refusal, "put unshare() first")
    if rules.shared:
        return (0,) * edit.count(n_layers)
    order = edit.order(n_layers, first_copied=rules.first_copied)
    if len(order) > MOST_LAYERS:
        raise EditError(
            f"{edit} would give {len(order)} layers", f"at most {MOST_LAYERS} are possible"
        )
    return order
