"""Text to pre-train on: sentences of a few words, in paragraphs."""

from __future__ import annotations

import random
from pathlib import Path

WORDS = ["the", "a", "cat", "dog", "house", "tree", "walks", "sees", "likes", "big", "near"]


def write_prose(path: Path, *, n_paragraphs: int = 150) -> Path:
    """Paragraphs of four lines with nine drawn words each; gives the path back."""
    words = random.Random(0)
    paragraphs = [
        "\n".join(" ".join(words.choices(WORDS, k=9)) + " ." for _ in range(4))
        for _ in range(n_paragraphs)
    ]
    path.write_text("\n\n".join(paragraphs), encoding="utf-8")
    return path
