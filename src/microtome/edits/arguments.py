"""What an edit's constructor checks without a model: numbers, layers, heads, choices."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import SupportsFloat, SupportsIndex

from microtome.errors import EditError, RequestError
from microtome.values import (
    LARGEST_NUMBER,
    MOST_LISTED,
    Head,
    HeadPattern,
    check_layer,
    parse_ranges,
    quoted,
)

# An unsigned 32-bit number: what every random generator takes.
LARGEST_SEED = 2**32 - 1
# Far beyond sense, still far from overflow in half precision's 65,504.
LARGEST_STD = 1000.0

LayerArgument = SupportsIndex | str
HeadArgument = Head | HeadPattern | str


def whole_number(given: object, what: str, *, least: int = 1, most: int = LARGEST_NUMBER) -> int:
    """``given`` as an int from ``least`` to ``most``; floats, texts and booleans are refused."""
    if not isinstance(given, bool) and isinstance(given, SupportsIndex):
        number = operator.index(given)
        if least <= number <= most:
            return number
    raise EditError(f"{what} must be a whole number from {least} to {most}, got {_shown(given)}")


def seed_number(given: object) -> int:
    """A seed, 0 or larger."""
    return whole_number(given, "seed", least=0, most=LARGEST_SEED)


def positive_std(given: object) -> float:
    """A standard deviation: finite and above 0."""
    expected = f"std must be a number above 0, at most {LARGEST_STD:g}"
    if isinstance(given, (bool, str)) or not isinstance(given, SupportsFloat):
        raise EditError(f"{expected}, got {_shown(given)}")
    try:
        std = float(given)
    except OverflowError:  # an int beyond any float
        std = math.inf
    if not 0 < std <= LARGEST_STD:  # not a number fails both
        raise EditError(f"{expected}, got {std}")
    return std


def one_of(given: str, what: str, known: tuple[str, ...]) -> str:
    """One of the words in ``known``."""
    if given not in known:
        raise EditError(f"{what} must be {' or '.join(known)}, got {_shown(given)}")
    return given


def listed_layers(given: Iterable[LayerArgument]) -> tuple[int, ...]:
    """Layers as written: ints and ranges such as ``"0-2"``, in that order; at least one."""
    layers: list[int] = []
    for argument in given:
        layers.extend(_layers_of(argument))
        if len(layers) > MOST_LISTED:
            raise EditError(f"expected at most {MOST_LISTED} layers, got more")
    if not layers:
        raise EditError("expected at least one layer, got none", "list layers or ranges: 3 or 0-2")
    return tuple(layers)


def layer_set(given: Iterable[LayerArgument]) -> tuple[int, ...]:
    """Layers as a set: sorted, each once."""
    return tuple(sorted(set(listed_layers(given))))


def distinct_layers(given: Iterable[LayerArgument], hint: str) -> tuple[int, ...]:
    """Layers, sorted; one that is listed twice is refused, since it could mean two things."""
    layers = sorted(listed_layers(given))
    for left, right in itertools.pairwise(layers):
        if left == right:
            raise EditError(f"layer {left} is listed twice", hint)
    return tuple(layers)


def head_patterns(given: Iterable[HeadArgument]) -> tuple[HeadPattern, ...]:
    """Patterns of heads, sorted, without those that another one covers; at least one."""
    patterns = {pattern for argument in given for pattern in _patterns_of(argument)}
    if not patterns:
        raise EditError("expected at least one head, got none", "list heads: 3.7, 3.* or *.7")
    whole_layers = {p.layer for p in patterns if p.head is None}
    whole_columns = {p.head for p in patterns if p.layer is None}
    distinct = (p for p in patterns if not _is_covered(p, whole_layers, whole_columns))
    return tuple(sorted(distinct, key=_stars_last))


def check_layers(layers: Iterable[int], n_layers: int) -> None:
    """Refuse layers that a model of ``n_layers`` layers doesn't have."""
    with as_edit_error():
        for layer in layers:
            check_layer(layer, n_layers)


@contextmanager
def as_edit_error() -> Iterator[None]:
    """What is refused inside the block is refused as an :class:`EditError`, in the same words."""
    try:
        yield
    except RequestError as error:
        raise EditError(error.message, error.hint) from None


def _layers_of(argument: LayerArgument) -> tuple[int, ...]:
    if not isinstance(argument, str):
        return (whole_number(argument, "layer", least=0),)
    with as_edit_error():
        return parse_ranges(argument)


def _patterns_of(argument: HeadArgument) -> tuple[HeadPattern, ...]:
    if isinstance(argument, HeadPattern):
        return (argument,)
    if isinstance(argument, Head):
        return (HeadPattern(argument.layer, argument.head),)
    if not isinstance(argument, str):
        # 3.10 as a float would be head 1 of layer 3.
        raise EditError(f"expected a head, got {argument!r}", 'write it as text: "3.7"')
    with as_edit_error():
        return tuple(HeadPattern.parse(part) for part in argument.split(","))


def _is_covered(
    pattern: HeadPattern, whole_layers: set[int | None], whole_columns: set[int | None]
) -> bool:
    """Whether another pattern with a star means all of this one's heads."""
    everything_else = None in whole_layers and (pattern.layer, pattern.head) != (None, None)
    in_layer = pattern.head is not None and pattern.layer in whole_layers
    in_column = pattern.layer is not None and pattern.head in whole_columns
    return everything_else or in_layer or in_column


def _stars_last(pattern: HeadPattern) -> tuple[bool, int, bool, int]:
    return pattern.layer is None, pattern.layer or 0, pattern.head is None, pattern.head or 0


def _shown(given: object) -> str:
    if isinstance(given, str):
        return quoted(given)
    # Python refuses to print numbers of thousands of digits.
    if isinstance(given, int) and abs(given) >= 10**15:
        return "a huge number"
    return repr(given)
