"""A trial: one unit of work as a value. Its hash is its name in a run.

The hash covers what decides the number (the trial's logical name, its request, the content of model
and data, needed trials) and nothing else: not paths, not the module that holds the function, not
labels, not resources, not our version.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from microtome.errors import RequestError
from microtome.requests import canonical_json

HASH_LENGTH = 32  # hex digits: 128 bits
_SCALARS = {str, int, float, bool, type(None)}
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_NAME = re.compile(r"[\w.:-]+")


def _is_flat(value: Mapping[str, Any]) -> bool:
    """Whether a shallow copy is as good as one through JSON, and much cheaper."""
    return isinstance(value, dict) and all(
        type(key) is str and type(item) in _SCALARS for key, item in value.items()
    )


def _copied(value: Mapping[str, Any], what: str) -> tuple[dict[str, Any], str]:
    """A copy through JSON, so that tuples are lists and nobody else holds it; and the JSON."""
    if not value and isinstance(value, dict):
        return {}, "{}"
    try:
        text = canonical_json(value)
        copy = dict(value) if _is_flat(value) else json.loads(text)
    except (TypeError, ValueError) as error:
        raise RequestError(
            f"a trial's {what} must be JSON, got {value!r} ({error})",
            "use text, finite numbers, true/false, null, lists and dictionaries of them",
        ) from error
    if not isinstance(copy, dict):
        raise RequestError(f"a trial's {what} must be a dictionary, got {value!r}")
    return copy, text


@dataclass(frozen=True)
class Trial:
    """One unit of work: ``function(request, context)``, run at most once per run folder.

    ``function`` is where the work is done, ``module:function``. ``name`` is what the work is, as
    the hash knows it: with a name like ``duplication.decode`` the function may move to another
    module and stored records stay valid. Without a name it is ``function`` itself.
    ``content`` holds hashes of what is read (model, data); ``where`` holds the paths under the
    same keys and isn't hashed. ``columns`` (experiment, model, task) are added to every row.
    ``limit`` is in seconds. ``needs`` are hashes of trials that must be done before. ``work`` is
    how long it takes compared with other trials of its run, in any unit: for the time left.

        Trial("my_lab.lengths:measure", {"limit": 100}, name="lengths.measure")
    """

    function: str
    request: Mapping[str, Any] = field(default_factory=dict)
    content: Mapping[str, str] = field(default_factory=dict)
    needs: Sequence[str] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    name: str = ""
    limit: float | None = None
    gpus: float = 0.0
    cpus: float = 1.0
    work: float = 1.0
    hash: str = field(init=False, default="")

    def __post_init__(self) -> None:
        if not _FUNCTION.fullmatch(self.function):
            raise RequestError(
                f"a trial's function is written module:function, got {self.function!r}"
            )
        if not self.name:
            object.__setattr__(self, "name", self.function)
        if not _NAME.fullmatch(self.name):
            raise RequestError(
                f"a trial's name is letters, digits, dots and hyphens, got {self.name!r}"
            )
        if self.limit is not None and not (math.isfinite(self.limit) and self.limit > 0):
            raise RequestError(f"a trial's limit is a number of seconds above 0, got {self.limit}")
        if not (math.isfinite(self.work) and self.work > 0):
            raise RequestError(f"a trial's work is a number above 0, got {self.work}")
        texts = {}
        for name in ("request", "content", "columns"):
            copy, texts[name] = _copied(getattr(self, name), name)
            object.__setattr__(self, name, copy)
        object.__setattr__(self, "needs", tuple(self.needs))
        object.__setattr__(self, "where", {k: str(v) for k, v in self.where.items()})
        # The canonical JSON of [name, request, content, needs].
        needs = canonical_json(self.needs)
        covered = f'["{self.name}",{texts["request"]},{texts["content"]},{needs}]'
        digest = hashlib.sha256(covered.encode()).hexdigest()
        object.__setattr__(self, "hash", digest[:HASH_LENGTH])

    def __hash__(self) -> int:
        return hash(self.hash)

    @property
    def title(self) -> str:
        """The label for people, or the start of the hash."""
        return self.label or self.hash[:12]


def seed_for(trial: Trial | str, name: str) -> int:
    """The seed ``name`` ("init", "data", "dropout") of a trial (or of its hash), 0 … 2³¹−1.

    It depends on nothing but the trial's hash and the name, so every executor draws the same.
    """
    trial_hash = trial.hash if isinstance(trial, Trial) else trial
    digest = hashlib.sha256(f"{trial_hash}:{name}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
