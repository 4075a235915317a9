"""Tags of words that mark entities: IOB1, IOB2, BIOES and BILOU read as strict IOB2."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

OUTSIDE = "O"

_TAG = re.compile(r"([BIESLUM])-(\S+)")
_STARTS, _ENDS = "BSU", "ESLU"  # BILOU says L and U for BIOES's E and S


def is_tag(text: str) -> bool:
    """Whether ``text`` is a tag of one of the schemes."""
    return text == OUTSIDE or _TAG.fullmatch(text) is not None


def is_strict(tag: str) -> bool:
    """Whether it is a tag of IOB2."""
    return tag[:2] in ("B-", "I-", OUTSIDE)


def strict_tags(tags: Sequence[str]) -> tuple[tuple[str, ...], int]:
    """A sentence's tags as IOB2, the same entities; and how many of these began without saying so.

    An entity begins at a B, S or U, and at any other tag that doesn't continue the one before it:
    IOB1 means that, in IOB2 it is an oddity. What isn't a tag is a ValueError.

    strict_tags(["I-PER", "I-PER", "O"])      # (("B-PER", "I-PER", "O"), 1)
    """
    strict: list[str] = []
    before, is_open, n_implied = "", False, 0
    for tag in tags:
        if tag == OUTSIDE:
            strict.append(OUTSIDE)
            is_open = False
            continue
        parts = _TAG.fullmatch(tag)
        if parts is None:
            raise ValueError(f"expected a tag like O, B-PER or I-PER, got {tag!r}")
        prefix, name = parts.groups()
        continues = is_open and name == before and prefix not in _STARTS
        n_implied += not continues and prefix not in _STARTS
        strict.append(f"{'I' if continues else 'B'}-{name}")
        before, is_open = name, prefix not in _ENDS
    return tuple(strict), n_implied


def tag_names(tags: Iterable[str]) -> tuple[str, ...]:
    """The labels of a file with these tags: O, then B and I of each type of entity, by name."""
    types = sorted({tag[2:] for tag in tags if tag != OUTSIDE})
    return (OUTSIDE, *(f"{prefix}-{name}" for name in types for prefix in "BI"))
