"""Whether a request goes on with the one that a run was started with.

Equal, or wider: a list in a request is a set of things to sweep over, and may grow; so may a
range written as text ("12-16"). Ordered things (edits) are written as one text, and are compared
as such. An absent key equals null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from microtome.runs.trial import canonical_json

_RANGE = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What keeps ``new`` from going on with ``old``, one line per key; empty when it may."""
    return list(_differences(old, new, ""))


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> Iterator[str]:
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from _differences(before, after, f"{path}{key}.")
        elif not _goes_on(before, after):
            yield f"{path}{key}: {_shown(before)} in the run, {_shown(after)} asked for"


def _goes_on(before: object, after: object) -> bool:
    if canonical_json(before) == canonical_json(after):
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


def _shown(value: object) -> str:
    text = "nothing" if value is None else canonical_json(value)
    return text if len(text) <= 120 else text[:117] + "…"
