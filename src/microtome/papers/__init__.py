"""What the four papers report, as data: each figure and each claim with its source.

Nothing is smoothed: where a paper contradicts itself or another, the note says so, and a cell that
can't be right is marked ``suspect`` and kept as printed.
"""

from microtome.papers.answer import Answer, Verdict
from microtome.papers.claims import CLAIMS, KAO_A, KAO_B, KOVALEVA, SINGH, Claim, claims
from microtome.papers.printed_numbers import FIGURES, PaperFigure, matching, model_name

__all__ = [
    "CLAIMS",
    "FIGURES",
    "KAO_A",
    "KAO_B",
    "KOVALEVA",
    "SINGH",
    "Answer",
    "Claim",
    "PaperFigure",
    "Verdict",
    "claims",
    "matching",
    "model_name",
]
