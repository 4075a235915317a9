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
    """Which depth describes the labels shortest, what the controls take, and how sure that is."""
    if not describes(rows):
        return f"{answer(rows)}."
    best, rival = shortest(rows), shortest(rows, RANDOM)
    return (
        f"{answer(rows)}. The uniform code is {best['compression']:.2f} times as long, the label"
        f" frequencies alone take {bits_of(without_states(rows, FREQUENCIES), 'bits_per_label')},"
        f" and random blocks at their shortest, depth {rival['depth']},"
        f" {number(rival['bits_per_label'])}. Against random labels the selectivity is"
        f" {bits_of(best, 'selectivity', sign=True)}; {how_sure(rows)}."
    )


def describes(rows: TidyRows) -> bool:
    """Whether the states of some depth save anything against the labels' frequencies."""
    alone = without_states(rows, FREQUENCIES)
    return bool(shortest(rows)["bits_per_label"] < alone["bits_per_label"])


def answer(rows: TidyRows) -> str:
    """The shortest depth, and its difference from random blocks; or that there is none."""
    best = shortest(rows)
    depth = f"depth {best['depth']} of {max(row['depth'] for row in coded(rows, PRETRAINED))}"
    length = f"{bits_of(best, 'bits_per_label')} per label"
    if not describes(rows):
        alone = number(without_states(rows, FREQUENCIES)["bits_per_label"])
        return (
            f"No depth describes the labels in fewer bits than their frequencies alone, {alone}:"
            f" {depth} takes {length} ({best['n']:,} {best['unit']})"
        )
    start = f"{depth.capitalize()} describes the labels shortest: {length}"
    low, high = best["saved_low"], best["saved_high"]
    if low is not None and low <= 0 <= high:
        return f"{start}, indistinguishable from random blocks at that depth"
    return f"{start}, saving {bits_of(best, 'saved', sign=True)} against random blocks"


def how_sure(rows: TidyRows) -> str:
    """That the depth was picked on what it is measured on, and which others are as short."""
    best = shortest(rows)
    words = f"the depth was picked on the same {best['n']:,} {best['unit']}"
    alike = [
        row["depth"]
        for row in by_depth(coded(rows, PRETRAINED))
        if best["high"] is not None and row["bits_per_label"] <= best["high"]
    ]
    if len(alike) < 2:
        return words
    depths = format_ranges(alike).replace(",", ", ")
    return f"{words}, and its interval holds those of depths {depths}"


def bits_of(row: TidyRow, column: str, *, sign: bool = False) -> str:
    """0.412 bits (0.380 to 0.441), or +0.310 bits (+0.280 to +0.340)."""
    ends = interval_of(row, column, sign=sign)
    return f"{number(row[column], sign=sign)} bits" + (f" ({ends})" if ends else "")


def interval_of(row: TidyRow, column: str, *, sign: bool = False) -> str:
    """0.380 to 0.441; empty where there is no interval."""
    low, high = (row[end] for end in ENDS[column])
    return "" if low is None else f"{number(low, sign=sign)} to {number(high, sign=sign)}"


def number(value: float, *, sign: bool = False) -> str:
    """A number of bits: 0.412, +0.310, −0.020."""
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
