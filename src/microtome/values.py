"""The small values of the domain: a head, a pattern of heads, ranges of layers. No torch here.

Layers and heads are counted from 0; ranges are inclusive: ``0-2`` is the layers 0, 1 and 2.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from microtome.errors import RequestError

# No encoder comes near; a number above it is a slip of the finger, and would only eat memory.
LARGEST_NUMBER = 10_000
MOST_LISTED = LARGEST_NUMBER + 1

_DIGITS = frozenset("0123456789")
_HEAD = re.compile(r"(\*|[0-9]+)\.(\*|[0-9]+)")


@dataclass(frozen=True, order=True)
class Head:
    """Head ``head`` of layer ``layer``, written ``3.7``."""

    layer: int
    head: int

    def __post_init__(self) -> None:
        _check_index(self.layer, "layer")
        _check_index(self.head, "head")

    def __str__(self) -> str:
        return f"{self.layer}.{self.head}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Read ``3.7``."""
        pattern = HeadPattern.parse(text)
        if pattern.layer is None or pattern.head is None:
            raise RequestError(f"expected one head, got {quoted(text)}", "write LAYER.HEAD: 3.7")
        return cls(pattern.layer, pattern.head)


@dataclass(frozen=True)
class HeadPattern:
    """A set of heads: ``3.7``, ``3.*`` (all of layer 3) or ``*.7`` (number 7 of every layer).

    ``None`` means "all". For example ``HeadPattern.parse("3.*").expand(12, 12)`` has 12 heads.
    """

    layer: int | None
    head: int | None

    def __post_init__(self) -> None:
        for number, what in ((self.layer, "layer"), (self.head, "head")):
            if number is not None:
                _check_index(number, what)

    def __str__(self) -> str:
        return ".".join("*" if number is None else str(number) for number in vars(self).values())

    @classmethod
    def parse(cls, text: str) -> HeadPattern:
        """Read ``3.7``, ``3.*``, ``*.7`` or ``*.*``."""
        found = _HEAD.fullmatch(text.strip())
        if found is None:
            raise RequestError(
                f"expected a head, got {quoted(text)}", "write LAYER.HEAD: 3.7, 3.* or *.7"
            )
        return cls(*(None if index == "*" else parse_number(index) for index in found.groups()))

    def expand(self, n_layers: int, n_heads: int) -> tuple[Head, ...]:
        """The heads that are meant on a model of this size; outside of it is an error."""
        if self.layer is not None:
            check_layer(self.layer, n_layers)
        if self.head is not None and self.head >= n_heads:
            raise RequestError(
                f"there is no head {self.head} ({self}): a layer has {_span('head', n_heads)}"
            )
        layers = range(n_layers) if self.layer is None else (self.layer,)
        heads = range(n_heads) if self.head is None else (self.head,)
        return tuple(Head(layer, head) for layer in layers for head in heads)


def parse_ranges(text: str) -> tuple[int, ...]:
    """Read ``0-2,5`` as (0, 1, 2, 5), in the order written."""
    numbers: list[int] = []
    for part in text.split(","):
        numbers.extend(parse_range(part))
        if len(numbers) > MOST_LISTED:
            raise RequestError(
                f"expected at most {MOST_LISTED} numbers, got more in {quoted(text)}"
            )
    return tuple(numbers)


def parse_range(part: str) -> range:
    """Read ``3`` or ``0-2``, without listing the numbers."""
    first, dash, last = part.partition("-")
    if not (_is_digits(first.strip()) and (not dash or _is_digits(last.strip()))):
        raise RequestError(f"expected a number or a range, got {quoted(part)}", "write 3 or 0-2")
    start = parse_number(first)
    stop = parse_number(last) if dash else start
    if stop < start:
        raise RequestError(f"range {start}-{stop} runs backwards", f"write {stop}-{start}")
    return range(start, stop + 1)


def format_ranges(numbers: Iterable[int]) -> str:
    """Write (0, 1, 2, 5) as ``0-2,5``; :func:`parse_ranges` gives the same numbers back."""
    parts = []
    # Numbers that count up by one are equally far from their place in the list.
    for _, run in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        stretch = [number for _, number in run]
        parts.append(f"{stretch[0]}-{stretch[-1]}" if len(stretch) > 1 else f"{stretch[0]}")
    return ",".join(parts)


def parse_number(text: str) -> int:
    """Read a whole number from 0 to :data:`LARGEST_NUMBER`, of plain digits only."""
    digits = text.strip()
    if not _is_digits(digits):
        raise RequestError(f"expected a whole number, got {quoted(text)}")
    # Looked at as text first: Python refuses to read thousands of digits, with a ValueError.
    significant = digits.lstrip("0") or "0"
    if len(significant) > len(str(LARGEST_NUMBER)) or int(significant) > LARGEST_NUMBER:
        raise RequestError(f"expected a number up to {LARGEST_NUMBER}, got {quoted(text)}")
    return int(significant)


def check_layer(layer: int, n_layers: int) -> None:
    """Refuse a layer that a model of ``n_layers`` layers doesn't have."""
    if not 0 <= layer < n_layers:
        raise RequestError(f"there is no layer {layer}: the model has {_span('layer', n_layers)}")


def quoted(text: str, *, longest: int = 80) -> str:
    """``text`` in double quotes, on one line and short, as an error shows what it got."""
    short = text if len(text) <= longest else text[: longest - 1] + "…"
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)
    return f'"{line}"'


def _is_digits(text: str) -> bool:
    # str.isdigit also says yes to "²" and "٣".
    return bool(text) and _DIGITS.issuperset(text)


def _span(what: str, count: int) -> str:
    return f"{what} 0 only" if count == 1 else f"{what}s 0 to {count - 1}"


def _check_index(number: int, what: str) -> None:
    if not 0 <= number <= LARGEST_NUMBER:
        raise RequestError(f"expected a {what} from 0 to {LARGEST_NUMBER}, got {number}")
