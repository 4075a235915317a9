"""Whether work that is stored in a folder is the work that is requested now.

A request is a mapping of JSON values. Whoever stores work in a folder stores the request with it,
and a later call with another request is refused with what differs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from microtome.errors import RequestError

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_RANGE = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")
_LONGEST = 120  # characters of a value in a message


def canonical_json(value: object) -> str:
    """``value`` as JSON text, the same for equal values: sorted keys, no spaces, no NaN."""
    return _ENCODER.encode(value)


def equal(stored: object, requested: object) -> bool:
    """Whether two values are the same JSON; a tuple equals a list."""
    return canonical_json(stored) == canonical_json(requested)


def differences(
    stored: Mapping[str, Any],
    requested: Mapping[str, Any],
    *,
    continues: Callable[[Any, Any], bool] = equal,
) -> list[str]:
    """What keeps ``requested`` from continuing ``stored``: a line per key, none when it may.

    Mappings inside a request are compared key by key, and an absent key equals null.
    ``continues(stored_value, requested_value)`` decides about all other values.

    Example: ``differences({"seed": 0}, {"seed": 1})`` is ``["seed: 0 stored, 1 requested"]``.
    """
    return list(_differences(stored, requested, "", continues))


def _differences(
    stored: Mapping[str, Any],
    requested: Mapping[str, Any],
    path: str,
    continues: Callable[[Any, Any], bool],
) -> Iterator[str]:
    for key in sorted(stored.keys() | requested.keys()):
        before, now = stored.get(key), requested.get(key)
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            yield from _differences(before, now, f"{path}{key}.", continues)
        elif not continues(before, now):
            yield f"{path}{key}: {_shown(before)} stored, {_shown(now)} requested"


def check_same(
    folder: Path,
    stored: Mapping[str, Any],
    requested: Mapping[str, Any],
    *,
    what: str,
    hint: str = "choose another folder, or repeat the stored request",
    continues: Callable[[Any, Any], bool] = equal,
) -> None:
    """Refuse ``folder``, which holds ``what`` (a run, a fine-tuning), when the requests differ."""
    lines = differences(stored, requested, continues=continues)
    if lines:
        raise RequestError(
            f"{folder} holds {what} of a different request: {'; '.join(lines)}", hint
        )


def _shown(value: object) -> str:
    text = "nothing" if value is None else canonical_json(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def widens(before: object, after: object) -> bool:
    """Whether ``after`` is ``before`` or wider; for :func:`differences`.

    A list in a request is a set of things to sweep over, and may grow; so may a range written as
    text ("12-16"). Ordered things (edits) are written as one text, and are compared as such.
    """
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
