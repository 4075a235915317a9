"""Numbers in words, one way for all: differences in points with their sign, scores in percent."""

from __future__ import annotations

from microtome.views import TidyRow


def points(value: float) -> str:
    """A difference in percentage points, with its sign: +1.2, −0.5."""
    shown = f"{100 * value:+.1f}"
    return "+0.0" if shown == "-0.0" else shown.replace("-", "−")


def percent(value: float) -> str:
    """A score in percent: 87.3 %."""
    shown = f"{100 * value:.1f}"
    return "0.0 %" if shown == "-0.0" else f"{shown} %".replace("-", "−")


def change(value: float, low: float | None = None, high: float | None = None) -> str:
    """A difference with its interval, where it has one: −0.4 points (−1.1 to +0.3)."""
    shown = f"{points(value)} points"
    return shown if low is None or high is None else f"{shown} ({points(low)} to {points(high)})"


def counted(n: int, thing: str) -> str:
    """A number of things: no head, 1 head, 2 heads."""
    return f"{n or 'no'} {thing}{'' if n == 1 else 's'}"


def unit_of(row: TidyRow) -> str:
    """What a row's ``n`` counts: rows, sentences, pairs, queries."""
    unit: str = row.get("unit") or "rows"
    return unit
