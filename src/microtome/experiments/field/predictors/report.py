"""Rows of predictors as bars, curves, tables and words."""

from __future__ import annotations

from typing import Any

from microtome.experiments.kit import learning
from microtome.experiments.kit.wording import change, correlation, counted, percent, points
from microtome.views import (
    Bars,
    BarSeries,
    Curve,
    Level,
    TidyRow,
    TidyRows,
    View,
    series_of,
    table_of,
)

UNITS = ("layer", "head")
CONTROLS = ("random", "top first")
HEALED = "healed "  # before the stage of rows on what is lost after healing
MEASURED = "measured"
POINT = 0.01  # a score misleads when following it is sure to cost more than a point


def views(rows: TidyRows) -> tuple[View, ...]:
    """Agreement of every score, what following each costs, and both as tables."""
    shown: list[View] = []
    for unit in UNITS:
        found = agreements(rows, unit)
        shown.append(_bars(unit, found))
        if cuts := cuts_of(rows, unit):
            shown.append(_curve(unit, cuts, baseline_of(rows)))
        columns = ("score", "spearman", "low", "high", "n", "seconds", "sweep_seconds")
        title = f"Scores of {unit}s against the measured loss, and what they take"
        shown.append(table_of(title, found, columns))
        priced = ("score", "n_cut", "cut", "value", "delta", "regret", "regret_low", "regret_high")
        title = f"{unit.capitalize()}s cut by each score, on rows that nothing was chosen on"
        shown.append(table_of(title, cuts, priced, percent=priced[3:]))
    if healed := agreements(rows, "layer", HEALED):
        shown.append(_bars("layer", healed, "the loss after healing"))
        columns = ("score", "spearman", "low", "high", "n", "seconds", "sweep_seconds")
        title = "Scores of layers against the loss after healing, and what they take"
        shown.append(table_of(title, healed, columns))
        chosen = ("score", "cut", "value", "delta", "regret", "regret_low", "regret_high")
        title = "The layer that each score removes, after healing, on rows that chose nothing"
        shown.append(table_of(title, cuts_of(rows, "layer", HEALED), chosen, percent=chosen[2:]))
    return tuple(shown)


def _bars(unit: str, found: TidyRows, loss: str = "the measured loss") -> Bars:
    series = BarSeries(
        "Spearman", tuple(row["spearman"] for row in found), tuple(row["low"] for row in found),
        tuple(row["high"] for row in found),
    )  # fmt: skip
    groups = tuple(row["score"] for row in found)
    title = f"Rank correlation with {loss}, {counted(found[0]['n'], unit)}"
    return Bars(title, "score", "Spearman", groups, (series,), percent=False)


def _curve(unit: str, cuts: TidyRows, base: TidyRow) -> Curve:
    """The score left after cutting more and more, a line for each way to choose."""
    names = dict.fromkeys(row["score"] for row in cuts)
    series = tuple(
        series_of(
            name, [row for row in cuts if row["score"] == name], "n_cut", "value",
            is_control=name in CONTROLS,
        )
        for name in names
    )  # fmt: skip
    title = f"{unit.capitalize()}s cut by each score"
    levels = (Level("nothing cut, all rows", base["value"]),)
    return Curve(title, f"{unit}s cut", base["metric"], series, levels=levels)


def baseline_of(rows: TidyRows) -> TidyRow:
    """The model as it is."""
    return next(row for row in rows if row["stage"] == "baseline")


def agreements(rows: TidyRows, unit: str, after: str = "") -> list[TidyRow]:
    """Every score's agreement with measuring, the best first; ``after`` healing with HEALED."""
    stage = f"{after}agreement"
    found = [row for row in rows if row["stage"] == stage and row["unit"] == unit]
    return sorted(found, key=lambda row: -2 if row["spearman"] is None else -row["spearman"])


def cuts_of(rows: TidyRows, unit: str, after: str = "") -> list[TidyRow]:
    """Every cut that was chosen, by score and size."""
    return [row for row in rows if row["stage"] == f"{after}cut" and row["unit"] == unit]


def judged(rows: TidyRows, row: TidyRow, after: str = "") -> str:
    """Of a score's agreement: agrees, misleads, or can't tell.

    It misleads where a cut that it chose is sure to lose a point more than the one that measuring
    chose; else it agrees where its correlation is sure to be above 0.
    """
    chosen = [cut for cut in cuts_of(rows, row["unit"], after) if cut["score"] == row["score"]]
    if any(cut["regret_low"] is not None and cut["regret_low"] > POINT for cut in chosen):
        return "misleads"
    return "agrees" if row["low"] is not None and row["low"] > 0 else "can't tell"


def finding(rows: TidyRows) -> str:
    """Which score may be trusted for layers and for heads, and by how much others mislead."""
    base = baseline_of(rows)
    if not learning.has_learnt([base]):
        return (
            "The model hasn't learnt the task: it is no better than one constant answer, so no"
            " score can tell what a cut costs."
        )
    words = [part for unit in UNITS for part in (_trusted(rows, unit), _misled(rows, unit))]
    words.append(_healed(rows))
    score = f"The {base['metric']} of the whole model is {percent(base['value'])}"
    words.append(f"{score} ({base['n']:,} {base.get('unit') or 'rows'}).")
    return " ".join(part for part in words if part)


def _trusted(rows: TidyRows, unit: str) -> str:
    """The score that agrees best, what following it costs, and its seconds."""
    found = [row for row in agreements(rows, unit) if row["score"] not in CONTROLS]
    good = [row for row in found if judged(rows, row) == "agrees"]
    if not good:
        return f"No cheap score of {unit}s is sure to agree with measuring."
    best = good[0]
    words = (
        f"{unit.capitalize()}s: {best['score']} agrees best with measuring, Spearman"
        f" {_with_interval(best)} over {counted(best['n'], unit)}"
    )
    if cut := _half_cut(rows, best):
        words += (
            f"; cutting {cut['n_cut']} by it instead of by measuring loses"
            f" {change(cut['regret'], cut['regret_low'], cut['regret_high'])}"
        )
    return f"{words}; {best['seconds']:.0f} s instead of {best['sweep_seconds']:.0f} s."


def _misled(rows: TidyRows, unit: str) -> str:
    """The scores that are sure to lose more than a point, with the largest loss of each."""
    told = []
    for row in agreements(rows, unit):
        if row["score"] in CONTROLS or judged(rows, row) != "misleads":
            continue
        chosen = [cut for cut in cuts_of(rows, unit) if cut["score"] == row["score"]]
        worst = max(chosen, key=lambda cut: cut["regret"])
        told.append(f"{row['score']} ({points(worst['regret'])} points at {worst['n_cut']})")
    return f"Misleading for {unit}s: {', '.join(told)}." if told else ""


def _healed(rows: TidyRows) -> str:
    """Whether scores, or measuring without training, tell what is lost after healing."""
    found = agreements(rows, "layer", HEALED)
    if not found:
        return ""
    good = [row for row in found if judged(rows, row, HEALED) == "agrees"]
    good = [row for row in good if row["score"] not in CONTROLS]
    if not good:
        return "After healing, nothing is sure to agree with what removing a layer costs."
    told = ", ".join(f"{row['score']} {_with_interval(row)}" for row in good)
    return f"After healing, what a layer costs agrees with {told}."


def _half_cut(rows: TidyRows, score: TidyRow) -> TidyRow | None:
    """The middle one of the sizes that were cut by a score."""
    chosen = [cut for cut in cuts_of(rows, score["unit"]) if cut["score"] == score["score"]]
    return sorted(chosen, key=lambda cut: cut["n_cut"])[len(chosen) // 2] if chosen else None


def _with_interval(row: TidyRow) -> str:
    return correlation(row["spearman"], row["low"], row["high"])


def summary(rows: TidyRows) -> dict[str, Any]:
    """The correlation and the verdict of every score, by unit; of layers also after healing."""

    def told(unit: str, after: str = "") -> dict[str, Any]:
        return {
            row["score"]: {"spearman": row["spearman"], "verdict": judged(rows, row, after)}
            for row in agreements(rows, unit, after)
        }

    healed = told("layer", HEALED)
    return {unit: told(unit) for unit in UNITS} | ({"healed layer": healed} if healed else {})
