"""Whether a value in a request may follow the one that a run was started with.

It may when it is equal, or wider: a list in a request is a set of things to sweep over, and may
grow; so may a range written as text ("12-16"). Ordered things (edits) are written as one text, and
are compared as such.
"""

from __future__ import annotations

import re
from typing import Any

from microtome.requests import canonical_json, equal

_RANGE = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")


def widens(before: object, after: object) -> bool:
    """Whether ``after`` is ``before`` or contains it; for ``requests.differences``."""
    if equal(before, after):
        return True
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        return _members(before) <= _members(after)
    if isinstance(before, str) and isinstance(after, str):
        return not after.isdigit() and bool(_range(before)) and _range(before) <= _range(after)
    return False


def _members(values: list[Any] | tuple[Any, ...]) -> set[str]:
    return {canonical_json(value) for value in values}


def _range(text: str) -> set[int]:
    """The numbers in "0-2,5"; empty when the text isn't a range."""
    if not _RANGE.fullmatch(text):
        return set()
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if len(first) > 6 or len(last) > 6:  # a date or an id, not a range to sweep over
            return set()
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers
