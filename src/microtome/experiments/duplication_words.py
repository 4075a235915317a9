"""Rows of duplication as curves, a heat map and words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from microtome.experiments.block_scan import SCAN
from microtome.experiments.depth_table import (
    OTHER,
    SAME,
    SELECTION,
    Against,
    Arm,
    arms_of,
    compared,
)
from microtome.experiments.experiment import Rows, counted, percent, points
from microtome.experiments.strategies import BASELINE, EACH, is_deeper
from microtome.experiments.verdicts import CANT_TELL
from microtome.views import Cell, Curve, HeatMap, Series, Table, View, table_of

Row = Mapping[str, Any]
MOST_SENTENCES = 6
HIGH = 0.8


def decoded_rows(rows: Rows) -> list[Row]:
    """The last states, decoded without training, by strategy and number of layers."""
    found = [r for r in rows if r.get("stage") == "decoded" and r["strategy"] != SCAN]
    return sorted(found, key=lambda row: (row["strategy"] != BASELINE, row["layers"]))


def chosen(rows: Rows, strategy: str, selection: str) -> Row | None:
    """What the best depth is worth. A widened run keeps older ones behind the present one."""
    own = (r for r in rows if r.get("stage") == SELECTION and r["strategy"] == strategy)
    return next((row for row in own if row["selection"] == selection), None)


def views(rows: Rows) -> tuple[View, ...]:
    """Scores and decoding against the number of layers, the comparisons, the scan."""
    found: list[View] = []
    arms = arms_of(rows)
    if arms:
        metric = next(r["primary"] for r in rows if r.get("stage") == "finetuned")
        if lines := _by_strategy(arms):
            found.append(Curve("Fine-tuned, mean over seeds", "layers", metric, lines))
        found.append(_table(compared(arms)))
    decoded = decoded_rows(rows)
    if lines := _decoded_lines(decoded):
        title = "Last state decoded, no training"
        found.append(Curve(title, "layers", "token accuracy", lines))
    if any(row["strategy"] == EACH for row in decoded):
        found.append(_each_table(decoded))
    if any(row["strategy"] == SCAN for row in rows):
        found.append(_scan_map([row for row in rows if row["strategy"] == SCAN]))
    return tuple(found)


def _by_strategy(arms: Sequence[Arm]) -> tuple[Series, ...]:
    base = [arm for arm in arms if arm.strategy == BASELINE]
    series = []
    for strategy in _drawn(arm.strategy for arm in arms):
        own = [arm for arm in arms if arm.strategy == strategy]
        line = sorted(base + own, key=lambda arm: arm.n_layers)
        ends = [arm.ends for arm in line]
        series.append(
            Series(
                strategy,
                tuple(float(arm.n_layers) for arm in line),
                tuple(arm.mean for arm in line),
                tuple(low for low, _ in ends),
                tuple(high for _, high in ends),
            )
        )
    return tuple(series)


def _drawn(strategies: Iterable[str]) -> list[str]:
    """Strategies that make a line; single layers left out have all the same number of layers."""
    return [one for one in dict.fromkeys(strategies) if one not in (BASELINE, EACH)]


def _decoded_lines(rows: Sequence[Row]) -> tuple[Series, ...]:
    base = [row for row in rows if row["strategy"] == BASELINE]
    series = []
    for strategy in _drawn(row["strategy"] for row in rows):
        own = [row for row in rows if row["strategy"] == strategy]
        line = sorted(base + own, key=lambda row: row["layers"])
        x = tuple(float(row["layers"]) for row in line)
        y, low, high, beside = (
            tuple(row[column] for row in line) for column in ("value", "low", "high", "control")
        )
        series.append(Series(strategy, x, y, low, high))
        series.append(Series(f"{strategy}, random blocks", x, beside, is_control=True))
    return tuple(series)


def _each_table(rows: Sequence[Row]) -> Table:
    own = [dict(row) for row in rows if row["strategy"] in (BASELINE, EACH)]
    shown = ("value", "low", "high", "control")
    title = "Last state decoded with single layers left out, no training"
    return table_of(title, own, ("edit", "layers", *shown), percent=shown)


def _table(found: Sequence[Against]) -> Table:
    columns = ("strategy", "layers", "edit", "mean", "change", "low", "high", "seeds", "p_holm")
    rows: list[tuple[Cell, ...]] = []
    for one in found:
        change = one.difference
        ends = (
            (None, None) if change.interval is None else (change.interval.low, change.interval.high)
        )
        rows.append(
            (one.arm.strategy, one.arm.n_layers, one.arm.edit, one.arm.mean, change.value, *ends,
             change.n_edited, one.p_holm)
        )  # fmt: skip
    shown = ("mean", "change", "low", "high")
    return Table("Every depth against the baseline", columns, tuple(rows), percent=shown)


def _scan_map(rows: Sequence[Row]) -> HeatMap:
    base = next(row["value"] for row in rows if row["first_layer"] is None)
    cells = {(r["first_layer"], r["last_layer"]): r["value"] - base for r in rows if r["edit"]}
    layers = range(max(last for _, last in cells) + 1)
    names = tuple(map(str, layers))
    values = tuple(tuple(cells.get((i, j)) for j in layers) for i in layers)
    title = "Layers i to j once more, without training"
    label = f"change of {rows[0]['metric']}"
    return HeatMap(title, "from layer", "to layer", names, names, values, label, diverging=True)


def finding(rows: Rows) -> str:
    """Every depth against the baseline, and what picking the best is worth."""
    sentences = [_trained_words(rows), *_choice_words(rows), decoded_words(rows), _scan_words(rows)]
    return " ".join(sentence for sentence in sentences if sentence)


def _trained_words(rows: Rows) -> str:
    found = compared(arms_of(rows))
    if not found:
        return ""
    if len(found) <= MOST_SENTENCES:
        return " ".join(f"{one.words}." for one in found)
    best = max(found, key=lambda one: one.difference.value)
    worst = min(found, key=lambda one: one.difference.value)
    unsure = [one for one in found if CANT_TELL in one.verdict]
    return (
        f"{best.words}. {worst.words}. Of {counted(len(found), 'edit')},"
        f" {len(unsure)} can't be told from the baseline."
    )


def _choice_words(rows: Rows) -> list[str]:
    strategies = dict.fromkeys(r["strategy"] for r in rows if r.get("stage") == SELECTION)
    return [words for strategy in strategies if (words := choice_words(rows, strategy))]


def choice_words(rows: Rows, strategy: str) -> str:
    """The best depth the papers' way, and picked on other rows and seeds."""
    naive, honest = (chosen(rows, strategy, how) for how in (SAME, OTHER))
    if naive is None:
        return ""
    words = (
        f"The best of {naive['n']} depths ({strategy}) the papers' way, one run each against the"
        f" baseline's mean on the same rows: {points(naive['value'])} points"
        f" ({naive['layers']} layers)"
    )
    if honest is None:
        return f"{words}; one seed can't be picked on some runs and scored on others."
    gain = f"{points(honest['value'])} points"
    if honest["low"] is not None:
        ends = (points(honest[end]).removeprefix("+") for end in ("low", "high"))
        gain = f"{gain}, interval {' to '.join(ends)}"
    return (
        f"{words}; picked on other rows and seeds: {gain} over {honest['n']} seeds"
        f" ({honest['layers']} layers in {100 * honest['share']:.0f} % of the picks)."
    )


def decoded_words(rows: Rows) -> str:
    """How the last state fares without training."""
    found = decoded_rows(rows)
    base = next((row for row in found if row["strategy"] == BASELINE), None)
    if base is None:
        return ""
    words = f"Decoded without training, {base['layers']} layers give back {percent(base['value'])}"
    for strategy in dict.fromkeys(r["strategy"] for r in found if r["strategy"] != BASELINE):
        own = [row for row in found if row["strategy"] == strategy]
        last = max(own, key=lambda row: abs(row["layers"] - base["layers"]))
        words += (
            f", {last['layers']} ({strategy}) {percent(last['value'])}"
            f" (random blocks {percent(last['control'])})"
        )
    return f"{words}."


def _scan_words(rows: Rows) -> str:
    scan = [row for row in rows if row["strategy"] == SCAN]
    blocks = [row for row in scan if row["edit"]]
    if not blocks:
        return ""
    base = next(row for row in scan if not row["edit"])
    best, worst = (pick(blocks, key=lambda r: r["value"]) for pick in (max, min))
    better = [row for row in blocks if row["value"] > base["value"]]
    return (
        f"Of {len(blocks)} blocks repeated without training, {len(better)} raise the"
        f" {base['metric']} of {percent(base['value'])}; best {best['edit']}"
        f" {percent(best['value'])}, worst {worst['edit']} {percent(worst['value'])} (not tested:"
        " the best of so many is picked on these rows)."
    )


def summary(rows: Rows) -> dict[str, Any]:
    """The baseline, the best mean, and the honest gain."""
    arms = arms_of(rows)
    found: dict[str, Any] = {}
    if arms:
        best = max(arms, key=lambda arm: arm.mean)
        base = next(arm for arm in arms if arm.strategy == BASELINE)
        found |= {"baseline": base.mean, "best": best.mean, "best_layers": best.n_layers}
    honest = chosen(rows, "first", OTHER)
    if honest is not None:
        found |= {"honest_gain": honest["value"], "honest_low": honest["low"]}
        found["honest_high"] = honest["high"]
    return found


def measured(rows: Rows) -> dict[str, str]:
    """The papers' claims, from these rows."""
    found = compared(arms_of(rows))
    first = [one for one in found if one.arm.strategy == "first"]
    answers = {"gain": choice_words(rows, "first"), "decoded": decoded_words(rows)}
    if first:
        best = max(first, key=lambda one: one.difference.value)
        added = best.arm.n_layers - best.baseline.n_layers
        answers["how many"] = f"highest mean with {added} more; {best.words}"
        if str(rows[0].get("task", "")).startswith("sst2"):
            answers["easy task"] = best.words
    strategies = dict.fromkeys(one.arm.strategy for one in found if is_deeper(one.arm.strategy))
    if len(strategies) > 1:
        answers["which"] = "; ".join(_mean_change(found, strategy) for strategy in strategies)
    return {key: text for key, text in answers.items() if text}


def _mean_change(found: Sequence[Against], strategy: str) -> str:
    own = [one.difference.value for one in found if one.arm.strategy == strategy]
    return f"{strategy}: {points(sum(own) / len(own))} points, mean of {counted(len(own), 'depth')}"
