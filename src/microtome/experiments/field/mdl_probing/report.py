"""Rows of MDL probing as a curve, a table and words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from microtome.experiments.field.mdl_probing.plan import (
    CONTROL,
    FREQUENCIES,
    PRETRAINED,
    RANDOM,
    REAL,
    UNIFORM,
)
from microtome.experiments.kit.seed_curves import by_place, ends_of
from microtome.values import format_ranges
from microtome.views import Curve, Level, TidyRow, TidyRows, View, series_of, table_of

LINES = (
    ("labels", PRETRAINED, REAL),
    ("random labels", PRETRAINED, CONTROL),
    ("labels, random blocks", RANDOM, REAL),
)
WITHOUT_STATES = {"frequencies": FREQUENCIES, "uniform": UNIFORM}
ENDS = {
    "bits_per_label": ("low", "high"),
    "saved": ("saved_low", "saved_high"),
    "selectivity": ("selectivity_low", "selectivity_high"),
}


def coded(rows: TidyRows, encoder: str, target: str = REAL) -> list[TidyRow]:
    """The rows of one encoder (or of a code without one) and one kind of labels."""
    return [row for row in rows if (row["encoder"], row["target"]) == (encoder, target)]


def by_depth(rows: Iterable[TidyRow]) -> list[TidyRow]:
    """One row per depth, as :func:`over_orders`."""
    return [
        {"depth": depth, **over_orders(same)} for depth, same in by_place(rows, "depth").items()
    ]


def over_orders(rows: Sequence[TidyRow]) -> dict[str, Any]:
    """Means of rows that differ in their seed alone, with the intervals that they can have."""
    found: dict[str, Any] = {"n": rows[0]["n"], "unit": rows[0]["unit"]}
    for column, names in ENDS.items():
        found |= dict.fromkeys((column, *names))
        if rows[0][column] is not None:
            own = [
                {"value": row[column], "low": row[names[0]], "high": row[names[1]]} for row in rows
            ]
            found[column] = sum(row["value"] for row in own) / len(own)
            found |= zip(names, ends_of(own), strict=True)
    whole = sum(row["bits"] * row["compression"] for row in rows) / len(rows)  # of the uniform code
    found["compression"] = whole / found["n"] / found["bits_per_label"]
    return found


def without_states(rows: TidyRows, code: str) -> TidyRow:
    """What the labels cost by a code that reads nothing."""
    return over_orders(coded(rows, code))


def views(rows: TidyRows) -> tuple[View, ...]:
    """Bits per label by depth, of labels and controls; the depths as a table."""
    series = tuple(
        series_of(
            name, by_depth(coded(rows, encoder, target)), "depth", "bits_per_label",
            ends=ENDS["bits_per_label"], is_control=(encoder, target) != (PRETRAINED, REAL),
        )
        for name, encoder, target in LINES
    )  # fmt: skip
    # Frequencies read no states: the same at every depth.
    alone = [{**without_states(rows, FREQUENCIES), "depth": x} for x in series[0].x]
    flat = series_of(
        "label frequencies alone", alone, "depth", "bits_per_label", ends=ENDS["bits_per_label"],
        is_control=True,
    )  # fmt: skip
    uniform = Level("uniform code", without_states(rows, UNIFORM)["bits_per_label"])
    curve = Curve(
        "Bits that a label takes, given the states of a depth", "depth", "bits per label",
        (*series, flat), percent=False, levels=(uniform,),
    )  # fmt: skip
    return (curve, _table(rows))


def _table(rows: TidyRows) -> View:
    columns = ("depth", "bits_per_label", *ENDS["bits_per_label"], "compression", "saved",
               *ENDS["saved"], "selectivity")  # fmt: skip
    last = [{**without_states(rows, code), "depth": name} for name, code in WITHOUT_STATES.items()]
    title = "Every depth; bits saved against random blocks, selectivity against random labels"
    return table_of(title, [*by_depth(coded(rows, PRETRAINED)), *last], columns)


def shortest(rows: TidyRows, encoder: str = PRETRAINED) -> TidyRow:
    """The depth whose states describe the labels shortest."""
    return min(by_depth(coded(rows, encoder)), key=lambda row: row["bits_per_label"])


def finding(rows: TidyRows) -> str:
    """Which depth describes the labels shortest, and what the controls take there."""
    best, alone = shortest(rows), without_states(rows, FREQUENCIES)
    n_layers = max(row["depth"] for row in coded(rows, PRETRAINED))
    if best["bits_per_label"] >= alone["bits_per_label"]:
        return (
            "No depth describes the labels in fewer bits than their frequencies alone, which take"
            f" {_bits(alone['bits_per_label'])} per label; depth {best['depth']} of {n_layers}"
            f" takes {_measured(best, 'bits_per_label')} ({best['n']:,} {best['unit']})."
        )
    return (
        f"Depth {best['depth']} of {n_layers} describes the labels shortest:"
        f" {_measured(best, 'bits_per_label')} per label, {best['compression']:.2f} times shorter"
        f" than the uniform code; {_against_random(rows, best)}."
        f" The label frequencies alone take {_bits(alone['bits_per_label'])}; against random labels"
        f" the selectivity at that depth is {_measured(best, 'selectivity', sign=True)}."
        f" The depth was picked on the same {best['n']:,} {best['unit']}{_as_short(rows, best)}."
    )


def _as_short(rows: TidyRows, best: TidyRow) -> str:
    """The other depths that are as short, so far as the interval of the shortest tells."""
    if best["high"] is None:
        return ""
    alike = [
        row["depth"]
        for row in by_depth(coded(rows, PRETRAINED))
        if row["bits_per_label"] <= best["high"] and row["depth"] != best["depth"]
    ]
    depths = f"depth{'s' if len(alike) > 1 else ''} {format_ranges(alike)}"
    return f"; its interval holds {depths}, too" if alike else ""


def _against_random(rows: TidyRows, best: TidyRow) -> str:
    """The difference from random blocks at that depth, and at the depth that is best for them."""
    sure = best["saved_low"] is None or not best["saved_low"] <= 0 <= best["saved_high"]
    rival = shortest(rows, RANDOM)
    saved = f"it saves {_measured(best, 'saved', sign=True)}"
    if not sure:
        return f"indistinguishable from random blocks, against which {saved}"
    return (
        f"against random blocks at that depth {saved}, and their shortest is"
        f" {_bits(rival['bits_per_label'])} at depth {rival['depth']}"
    )


def _measured(row: TidyRow, column: str, *, sign: bool = False) -> str:
    """0.412 bits (0.380 to 0.441), or +0.310 bits (+0.280 to +0.340)."""
    low, high = (row[end] for end in ENDS[column])
    shown = f"{_number(row[column], sign=sign)} bits"
    if low is None:
        return shown
    return f"{shown} ({_number(low, sign=sign)} to {_number(high, sign=sign)})"


def _bits(value: float) -> str:
    return f"{_number(value)} bits"


def _number(value: float, *, sign: bool = False) -> str:
    return f"{value:+.3f}".replace("-", "−") if sign else f"{value:.3f}"


def summary(rows: TidyRows) -> dict[str, Any]:
    """The shortest depth, what it saves against the controls, and the codes without states."""
    best = shortest(rows)
    kept = ("bits_per_label", "compression", "saved", "selectivity")
    return {
        "best_depth": best["depth"],
        **{name: best[name] for name in kept},
        "frequencies": without_states(rows, FREQUENCIES)["bits_per_label"],
        "random_best_depth": shortest(rows, RANDOM)["depth"],
        "random_bits_per_label": shortest(rows, RANDOM)["bits_per_label"],
    }
