"""What a model card's front matter says: licence, learning rate, pipeline. Anybody may write it."""

from __future__ import annotations

import math
import re
from pathlib import Path

MAX_CARD_CHARACTERS = 100_000

_LICENSE = re.compile(r"^license:\s*['\"]?([\w.+-]{1,60})['\"]?\s*$", re.MULTILINE | re.ASCII)
_PIPELINE = re.compile(r"^pipeline_tag:\s*['\"]?([a-z-]{1,60})['\"]?\s*$", re.MULTILINE | re.ASCII)
_NUMBER = r"(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
_RATE = re.compile(rf"^learning_rate:\s*['\"]?{_NUMBER}['\"]?\s*$", re.MULTILINE | re.ASCII)


def license_of(folder: Path) -> str | None:
    """The licence that a model card names; None where it names none."""
    match = _LICENSE.search(_front_matter(folder))
    return match[1] if match else None


def learning_rate_of(folder: Path) -> float | None:
    """The ``learning_rate:`` of a model card; None where there is none.

    Small models need a larger rate than the papers' 2e-5; their cards name it.
    """
    match = _RATE.search(_front_matter(folder))
    rate = float(match[1]) if match else 0.0
    return rate if 0 < rate < math.inf else None


def pipeline_tag_of(folder: Path) -> str | None:
    """The ``pipeline_tag:`` of a model card, by which the hub sorts it; None where it has none."""
    match = _PIPELINE.search(_front_matter(folder))
    return match[1] if match else None


def _front_matter(folder: Path) -> str:
    card = folder / "README.md"
    if not card.is_file():
        return ""
    with card.open(encoding="utf-8", errors="replace") as stream:
        text = stream.read(MAX_CARD_CHARACTERS)
    front, fence, _ = text.removeprefix("---\n").partition("\n---")
    return front if fence and text.startswith("---\n") else ""
