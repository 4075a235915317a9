"""Whether work that is stored in a folder is the work that is requested now.

A request is a mapping of JSON values. Whoever stores work in a folder stores the request with it,
and a later call with another request is refused with what differs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from microtome.errors import RequestError

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
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
