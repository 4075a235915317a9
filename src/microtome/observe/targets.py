"""What a sweep switches off: sets of heads, and how."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from microtome.errors import EditError, RequestError
from microtome.families.seam import Family
from microtome.values import Head, HeadPattern

How = Literal["uniform", "zero"]
HOWS: tuple[How, ...] = ("uniform", "zero")


Pattern = str | HeadPattern | Head


@dataclass(frozen=True)
class Target:
    """Heads that are switched off together, and what they are called: ``3.7``, ``3.*``."""

    name: str
    heads: tuple[Head, ...]

    @property
    def first_layer(self) -> int:
        """The lowest layer that it changes."""
        return self.heads[0].layer

    def heads_of(self, layer: int) -> tuple[int, ...]:
        """The heads it switches off in one layer."""
        return tuple(head.head for head in self.heads if head.layer == layer)


def target(family: Family, patterns: Pattern | Iterable[Pattern]) -> Target:
    """One target from ``"3.7"``, ``"3.*"``, ``"*.7"`` or several of them at once."""
    listed = [patterns] if isinstance(patterns, str | HeadPattern | Head) else list(patterns)
    if not listed:
        raise RequestError("expected at least one head, got an empty set")
    shape = family.shape
    read = [HeadPattern.parse(str(pattern)) for pattern in listed]
    heads = {head for one in read for head in one.expand(shape.n_layers, shape.n_heads)}
    made = Target(" ".join(str(one) for one in read), tuple(sorted(heads)))
    _refuse_single_shared_layers(family, made)
    return made


def every_head_and_layer(family: Family) -> tuple[Target, ...]:
    """All heads, layer by layer, then all whole layers; ``*.j`` where the layers are shared."""
    n_layers, n_heads = family.shape.n_layers, family.shape.n_heads
    if family.depth_rules.shared:
        return tuple(target(family, f"*.{head}") for head in range(n_heads))
    names = [f"{layer}.{head}" for layer in range(n_layers) for head in range(n_heads)]
    names += [f"{layer}.*" for layer in range(n_layers)]
    return tuple(target(family, name) for name in names)


def check_how(how: str) -> None:
    """Refuse an unknown way of switching off."""
    if how not in HOWS:
        raise RequestError(f"how must be one of {', '.join(HOWS)}, got {how}")


def by_first_layer(targets: Sequence[Target]) -> dict[int, list[int]]:
    """Which targets begin at each layer: their places in ``targets``."""
    begun: dict[int, list[int]] = {}
    for place, one in enumerate(targets):
        begun.setdefault(one.first_layer, []).append(place)
    return begun


def _refuse_single_shared_layers(family: Family, made: Target) -> None:
    """Shared weights can't be changed at one depth alone: an edit would switch off every depth."""
    prefixes: dict[str, set[int]] = {}
    for layer in range(family.shape.n_layers):
        prefixes.setdefault(family.layer_prefix(layer), set()).add(layer)
    for layers in prefixes.values():
        if len({made.heads_of(layer) for layer in layers}) > 1:
            raise EditError(
                f"{made.name} asked for, but this {family.name} shares one layer among "
                f"{len(layers)} depths",
                "name the head at every depth (*.j), or put unshare() first",
            )
