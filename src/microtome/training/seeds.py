"""Seeds by name: what starts the head, orders the rows, and draws the dropout. No torch here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Seeds:
    """One seed for each use, so that one can be changed without the others.

    A trial of a run hands in its own: ``Seeds(*(context.seed(n) for n in Seeds.NAMES))``.
    """

    NAMES = ("init", "data", "dropout")

    init: int
    data: int
    dropout: int

    @classmethod
    def of(cls, seed: int) -> Seeds:
        """All of them from one number."""
        return cls(*(derived(seed, name) for name in cls.NAMES))


def derived(*parts: int | str) -> int:
    """A number in 0 … 2³¹−1 that depends on nothing but ``parts``."""
    digest = hashlib.sha256(":".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
