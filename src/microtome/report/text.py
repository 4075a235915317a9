"""How values become text. Everything shown passes here: names, labels and data are hostile.

Escaping for HTML is the template's work; here characters that act instead of being read are made
visible, and numbers get their digits.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

from microtome.views import Cell

MINUS = "−"
# Bidirectional controls reorder what is around them: "gnp.exe" reads as "exe.png".
_ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)
_BREAKS = re.compile(r"[\t\r\n]+")


def plain(text: object) -> str:
    r"""The text with acting characters spelled out (``\u202e``) and line breaks as spaces."""
    return _ACTING.sub(lambda match: f"\\u{ord(match[0]):04x}", _BREAKS.sub(" ", str(text)))


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text that was wrapped for the screen."""
    return [plain(part.strip()) for part in re.split(r"\n\s*\n", text) if part.strip()]


# A full stop ends a sentence only before a space, and not after these.
_END = re.compile(r"(?<!\bal\.)(?<!\bvs\.)(?<!e\.g\.)(?<!i\.e\.)(?<=[.!?])\s+")


def sentences(text: str) -> list[str]:
    """The sentences of a text; joined by spaces they are the text again, but for line breaks."""
    return [part for part in _END.split(text.strip()) if part]


def width_of(text: str, size: float) -> float:
    """About how wide a text is, in a common sans serif face of this size."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return size * (0.6 * (len(text) - wide) + wide)


def shortened(text: str, room: float, size: float) -> str:
    """The text, cut with an ellipsis where it is wider than the room for it."""
    if width_of(text, size) <= room:
        return text
    while text and width_of(text + "…", size) > room:
        text = text[:-1]
    return text.rstrip() + "…"


def is_number(value: object) -> bool:
    """Whether a value is a finite number (a truth value isn't)."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def signed(text: str, *, plus: bool = False) -> str:
    """A number's text with a real minus sign, and a plus where asked for."""
    if text.startswith("-"):
        return MINUS + text[1:]
    return f"+{text}" if plus and text.strip("0.,") else text


def column_texts(values: Sequence[Cell], *, percent: bool = False, plus: bool = False) -> list[str]:
    """The cells of one column, with the same number of digits in all of them."""
    numbers = [float(v) for v in values if isinstance(v, (int, float)) and is_number(v)]
    if not percent and _are_counts(numbers):
        values = [_as_count(v) for v in values]
        numbers = [v for v in numbers if v <= 1]
    decimals = _decimals(numbers)
    return [_cell(v, decimals, percent=percent, plus=plus) for v in values]


def _are_counts(numbers: Sequence[float]) -> bool:
    """Whether all above 1 are whole: counts, or training sizes, which are shares or rows."""
    above = [v for v in numbers if abs(v) > 1]
    return bool(above) and all(v.is_integer() for v in above)


def _as_count(value: Cell) -> Cell:
    """400.0 rows are 400 rows; a share of 1.0 stays one."""
    return int(value) if isinstance(value, float) and is_number(value) and abs(value) > 1 else value


def _decimals(numbers: Sequence[float]) -> int:
    largest = max(map(abs, numbers), default=0.0)
    return 1 if largest >= 100 else 2 if largest > 1 else 3  # p-values get three


def _cell(value: Cell, decimals: int, *, percent: bool, plus: bool) -> str:
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return plain(value)
    if not math.isfinite(value):
        return "–" if math.isnan(value) else signed("∞" if value > 0 else "-∞")
    if percent:
        return percents(float(value), plus=plus)
    if isinstance(value, int):
        return signed(f"{value:,}")
    if value != 0 and abs(value) < 10.0**-decimals:
        return ("<" if value > 0 else f">{MINUS}") + f"{10.0**-decimals:.{decimals}f}"
    return signed(f"{value:,.{decimals}f}")


def percents(value: float, *, plus: bool = False) -> str:
    """A share in percent, one decimal: ``87.3``, or ``+1.2`` with ``plus``."""
    text = f"{100 * value:.1f}"
    return signed("0.0" if text == "-0.0" else text, plus=plus)


def number(value: float, *, percent: bool, plus: bool = False) -> str:
    """One value of a figure."""
    if percent:
        return percents(value, plus=plus)
    return signed(f"{value:.3g}", plus=plus)


def between(low: float, high: float, *, percent: bool, plus: bool = False) -> str:
    """The ends of an interval: ``−1.1 to +0.3``; once where both are shown alike."""
    ends = [number(value, percent=percent, plus=plus) for value in (low, high)]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


COLUMNS = {
    "p_holm": "p (Holm)",
    "p_bh": "p (BH)",
    "p_maxt": "p (max-T)",
    "ms": "time",
    "latency_ms": "time of one text",
    "batch_ms": "time of a batch",
    "sweep_seconds": "of measuring",
}
UNITS = {
    "ms": "ms", "latency_ms": "ms", "batch_ms": "ms", "speed": "×", "seconds": "s",
    "sweep_seconds": "s",
}  # fmt: skip


def heading(column: str) -> str:
    """A column's name as a table shows it."""
    return COLUMNS.get(column) or plain(column).removeprefix("n_").replace("_", " ")
