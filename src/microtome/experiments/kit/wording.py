"""Numbers in words, one way for all: differences in points with their sign, scores in percent."""

from __future__ import annotations

from collections.abc import Sequence

from microtome.values import format_ranges
from microtome.views import Card, TidyRow


def points(value: float) -> str:
    """A difference in percentage points, with its sign: +1.2, −0.5."""
    shown = f"{100 * value:+.1f}"
    return "+0.0" if shown == "-0.0" else shown.replace("-", "−")


def percent(value: float) -> str:
    """A score in percent: 87.3 %."""
    shown = f"{100 * value:.1f}"
    return "0.0 %" if shown == "-0.0" else f"{shown} %".replace("-", "−")


def change(value: float, low: float | None = None, high: float | None = None) -> str:
    """A difference with its interval, where it has one: −0.4 points (−1.1 to +0.3).

    An interval whose ends are shown alike is left out: never "+0.0 to +0.0".
    """
    shown = f"{points(value)} points"
    if low is None or high is None or points(low) == points(high):
        return shown
    return f"{shown} ({points(low)} to {points(high)})"


def correlation(value: float, low: float, high: float) -> str:
    """A rank correlation with its interval: 0.41 (−0.09 to 0.66)."""
    return f"{value:.2f} ({low:.2f} to {high:.2f})".replace("-", "−")


def between(low: float | None, high: float | None) -> str:
    """The ends of a score's interval, in percent: 84.1 to 90.0; empty where it has none."""
    if low is None or high is None:
        return ""
    ends = [percent(value).removesuffix(" %") for value in (low, high)]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def listed(names: Sequence[str]) -> str:
    """Names as a sentence lists them: a; a and b; a, b and c."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def layers_named(layers: Sequence[int]) -> str:
    """Layers in words: Layer 2; Layers 0 to 2; Layers 0, 1 and 4."""
    names: list[str] = []
    for run in format_ranges(sorted(layers)).split(","):
        first, _, last = run.partition("-")
        is_long = last and int(last) - int(first) > 1
        names += [f"{first} to {last}"] if is_long else filter(None, (first, last))
    return f"Layer{'' if len(layers) == 1 else 's'} {listed(names)}"


def counted(n: int, thing: str) -> str:
    """A number of things: no head, 1 head, 2 heads."""
    return f"{n or 'no'} {thing}{'' if n == 1 else 's'}"


def unit_of(row: TidyRow) -> str:
    """What a row's ``n`` counts: rows, sentences, pairs, queries."""
    unit: str = row.get("unit") or "rows"
    return unit


def metric_name(metric: str) -> str:
    """A metric's name in words: cosine spearman."""
    return metric.replace("_", " ")


def score_card(row: TidyRow) -> Card:
    """The score of a row, with its interval and how many rows it is of."""
    interval = between(row.get("value_low"), row.get("value_high"))
    on = f"on {row['n']:,} {unit_of(row)}" if row.get("n") else ""
    return Card(
        metric_name(row["metric"]), percent(row["value"]), " ".join(filter(None, (interval, on)))
    )
