"""Rows of duplication as curves, a heat map and words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from microtome.experiments.kao.duplication.depth_comparison import (
    OTHER_ROWS,
    SAME_ROWS,
    SCAN,
    SELECTION,
    DepthComparison,
    TrainedDepth,
    baseline_not_learnt,
    compare_depths,
    trained_depths,
)
from microtome.experiments.kao.duplication.strategies import BASELINE, EACH
from microtome.experiments.kit.learning import (
    CONSTANT,
    constant_line,
    constant_of,
    n_one_answer,
    not_learnt,
)
from microtome.experiments.kit.wording import change, counted, listed, percent
from microtome.papers.answer import CANT_TELL
from microtome.views import (
    Cell,
    Curve,
    HeatMap,
    Series,
    Table,
    TidyRow,
    TidyRows,
    View,
    series_of,
    table_of,
)

READABLE = 0.8  # of the tokens, as the papers call decodable
MOST_SENTENCES = 3  # with more edits than this, the best and the worst speak for all


def decoded_rows(rows: TidyRows) -> list[TidyRow]:
    """The last states, decoded without training: the baseline's, then by number of layers."""
    decoded = [r for r in rows if r.get("stage") == "decoded" and r["strategy"] != SCAN]
    return sorted(decoded, key=lambda row: (row["strategy"] != BASELINE, row["layers"]))


def picked_row(rows: TidyRows, strategy: str, selection: str) -> TidyRow | None:
    """What the best depth is worth. A widened run keeps older rows after the present one."""
    picks = (r for r in rows if r.get("stage") == SELECTION and r["strategy"] == strategy)
    return next((row for row in picks if row["selection"] == selection), None)


def views(rows: TidyRows) -> tuple[View, ...]:
    """Scores and decoding against the number of layers, the comparisons, the scan."""
    shown: list[View] = []
    depths = trained_depths(rows)
    if depths:
        metric = next(r["primary"] for r in rows if r.get("stage") == "finetuned")
        if lines := _trained_lines(depths):
            places = [x for line in lines for x in line.x]
            lines += constant_line(depths[0].rows, places)
            title, said = "Fine-tuned, mean over seeds", what_depth_does(rows)
            shown.append(Curve(title, "layers", metric, lines, says=said))
        shown.append(_comparison_table(depths))
    decoded = decoded_rows(rows)
    if lines := _decoded_lines(decoded):
        title = "Last state decoded, no training"
        said = how_deep_it_reads(decoded)
        shown.append(Curve(title, "layers", "token accuracy", lines, says=said))
    if any(row["strategy"] == EACH for row in decoded):
        shown.append(_each_table(decoded))
    if scan := [row for row in rows if row["strategy"] == SCAN]:
        shown.append(_scan_map(scan))
    return tuple(shown)


def what_depth_does(rows: TidyRows) -> str:
    """Which numbers of layers are sure to be better or worse than the model's; empty for none."""
    compared = compare_depths(trained_depths(rows))
    by_verdict = {
        word: sorted({c.depth.n_layers for c in compared if c.verdict == word})
        for word in ("better", "worse")
    }
    said = [
        f"{listed([str(n) for n in layers])} layers are {word}"
        for word, layers in by_verdict.items()
        if layers
    ]
    return f"{' and '.join(said)} than {compared[0].baseline.n_layers}" if said else ""


def how_deep_it_reads(decoded: Sequence[TidyRow]) -> str:
    """Where the last state is sure to be lost without training; empty where nothing is sure."""
    deeper = [row for row in decoded if row["strategy"] not in (BASELINE, EACH)]
    lost = [row["layers"] for row in deeper if row["high"] is not None and row["high"] < READABLE]
    if lost:
        return f"With {min(lost)} layers the last state can no longer be read"
    if deeper and all(row["low"] is not None and row["low"] >= READABLE for row in deeper):
        return f"The last state can be read up to {max(row['layers'] for row in deeper)} layers"
    return ""


def _trained_lines(depths: Sequence[TrainedDepth]) -> tuple[Series, ...]:
    series = []
    for strategy in _drawn(depth.strategy for depth in depths):
        line = [depth for depth in depths if depth.strategy in (BASELINE, strategy)]
        line.sort(key=lambda depth: depth.n_layers)
        ends = [depth.ends for depth in line]
        series.append(
            Series(
                strategy,
                tuple(float(depth.n_layers) for depth in line),
                tuple(depth.mean for depth in line),
                tuple(low for low, _ in ends),
                tuple(high for _, high in ends),
            )
        )
    return tuple(series)


def _drawn(strategies: Iterable[str]) -> list[str]:
    """Strategies that make a line; single layers left out have all the same number of layers."""
    return [name for name in dict.fromkeys(strategies) if name not in (BASELINE, EACH)]


def _decoded_lines(rows: Sequence[TidyRow]) -> tuple[Series, ...]:
    series = []
    for strategy in _drawn(row["strategy"] for row in rows):
        line = [row for row in rows if row["strategy"] in (BASELINE, strategy)]
        line.sort(key=lambda row: row["layers"])
        name = f"{strategy}, random blocks"
        series.append(series_of(strategy, line, "layers", "value", ends=("low", "high")))
        series.append(series_of(name, line, "layers", "control", is_control=True))
    return tuple(series)


def _each_table(rows: Sequence[TidyRow]) -> Table:
    singles = [row for row in rows if row["strategy"] in (BASELINE, EACH)]
    shown = ("value", "low", "high", "control")
    title = "Last state decoded with single layers left out, no training"
    return table_of(title, singles, ("edit", "layers", *shown), percent=shown)


def _comparison_table(depths: Sequence[TrainedDepth]) -> Table:
    """Every depth and the constant answer; changes where the baseline has learnt something."""
    columns = ("strategy", "layers", "edit", "mean", "change", "low", "high", "seeds", "p_holm",
               "one_answer")  # fmt: skip
    compared = {comparison.depth: comparison for comparison in compare_depths(depths)}
    rows: list[tuple[Cell, ...]] = []
    for depth in depths:
        about = (depth.strategy, depth.n_layers, depth.edit, depth.mean)
        shown = _difference_cells(compared.get(depth))
        n_seeds, alike = len(depth.rows), n_one_answer(depth.rows)
        rows.append((*about, *shown[:3], n_seeds, *shown[3:], alike))
    constant = constant_of(depths[0].rows)
    if constant is not None:
        rows.append((CONSTANT, None, None, constant, *(None,) * 6))
    percents = ("mean", "change", "low", "high")
    return Table("Every depth against the baseline", columns, tuple(rows), percent=percents)


def _difference_cells(comparison: DepthComparison | None) -> tuple[Cell, Cell, Cell, Cell]:
    if comparison is None:
        return None, None, None, None
    interval = comparison.difference.interval
    ends = (None, None) if interval is None else (interval.low, interval.high)
    return comparison.difference.value, *ends, comparison.p_holm


def _scan_map(rows: Sequence[TidyRow]) -> HeatMap:
    base = next(row["value"] for row in rows if row["first_layer"] is None)
    cells = {(r["first_layer"], r["last_layer"]): r["value"] - base for r in rows if r["edit"]}
    layers = range(max(last for _, last in cells) + 1)
    names = tuple(map(str, layers))
    values = tuple(tuple(cells.get((i, j)) for j in layers) for i in layers)
    title = "Layers i to j once more, without training"
    label = f"change of {rows[0]['metric']}"
    return HeatMap(title, "from layer", "to layer", names, names, values, label, diverging=True)


def finding(rows: TidyRows) -> str:
    """Every depth against the baseline, and what picking the best is worth."""
    strategies = dict.fromkeys(r["strategy"] for r in rows if r.get("stage") == SELECTION)
    sentences = (
        baseline_not_learnt(rows) or _trained_finding(compare_depths(trained_depths(rows))),
        *(picked_finding(rows, strategy) for strategy in strategies),
        decoded_finding(rows),
        _scan_finding([row for row in rows if row["strategy"] == SCAN]),
    )
    return " ".join(sentence for sentence in sentences if sentence)


def _trained_finding(comparisons: Sequence[DepthComparison]) -> str:
    if len(comparisons) <= MOST_SENTENCES:
        return " ".join(f"{comparison.sentence}." for comparison in comparisons)
    best, worst = (
        pick(comparisons, key=lambda comparison: comparison.difference.value) for pick in (max, min)
    )
    unsure = [comparison for comparison in comparisons if CANT_TELL in comparison.verdict]
    return (
        f"{best.sentence}. {worst.sentence}. Of {len(comparisons)} edits,"
        f" {len(unsure) or 'none'} {'is' if len(unsure) == 1 else 'are'} indistinguishable from"
        " the baseline."
    )


def picked_finding(rows: TidyRows, strategy: str) -> str:
    """The best depth picked on other rows and seeds, and the papers' way.

    Empty without picks, and where the baseline has learnt nothing to compare with.
    """
    naive, honest = (picked_row(rows, strategy, how) for how in (SAME_ROWS, OTHER_ROWS))
    if naive is None or baseline_not_learnt(rows):
        return ""
    papers_way = (
        f"the papers' way, the best of {counted(naive['n'], 'depth')} with one run each against"
        f" the baseline's mean on the same rows: {change(naive['value'])}"
        f" ({naive['layers']} layers)"
    )
    if honest is None:
        return (
            f"The best depth ({strategy}) {papers_way}; one seed can't be picked on some runs and"
            " scored on others."
        )
    gain = change(honest["value"], honest["low"], honest["high"])
    return (
        f"The best depth ({strategy}) picked on other rows and seeds: {gain} over {honest['n']}"
        f" seeds ({honest['layers']} layers in {100 * honest['share']:.0f} % of the picks);"
        f" {papers_way}."
    )


def decoded_finding(rows: TidyRows) -> str:
    """What the last state gives back without training; empty where nothing was decoded."""
    decoded = decoded_rows(rows)
    base = next((row for row in decoded if row["strategy"] == BASELINE), None)
    if base is None:
        return ""
    words = (
        f"Decoded without training, {base['layers']} layers give back {percent(base['value'])}"
        " of the tokens"
    )
    for strategy in dict.fromkeys(r["strategy"] for r in decoded if r["strategy"] != BASELINE):
        edited = [row for row in decoded if row["strategy"] == strategy]
        last = max(edited, key=lambda row: abs(row["layers"] - base["layers"]))
        words += (
            f", {last['layers']} ({strategy}) {percent(last['value'])}"
            f" (random blocks {percent(last['control'])})"
        )
    return f"{words}."


def _scan_finding(scan: Sequence[TidyRow]) -> str:
    blocks = [row for row in scan if row["edit"]]
    if not blocks:
        return ""
    base = next(row for row in scan if not row["edit"])
    if why := not_learnt([base], "The unedited model"):
        return why
    best, worst = (pick(blocks, key=lambda row: row["value"]) for pick in (max, min))
    n_better = sum(row["value"] > base["value"] for row in blocks)
    return (
        f"Of {len(blocks)} blocks repeated without training, {n_better or 'none'}"
        f" {'raises' if n_better == 1 else 'raise'} the {base['metric']} of"
        f" {percent(base['value'])}; best {best['edit']} {percent(best['value'])}, worst"
        f" {worst['edit']} {percent(worst['value'])} (not tested: the best of so many is picked on"
        " these rows)."
    )


def summary(rows: TidyRows) -> dict[str, Any]:
    """The baseline, the best mean, and the honest gain."""
    depths = trained_depths(rows)
    numbers: dict[str, Any] = {}
    if depths:
        best = max(depths, key=lambda depth: depth.mean)
        base = next(depth for depth in depths if depth.strategy == BASELINE)
        numbers |= {"baseline": base.mean, "best": best.mean, "best_layers": best.n_layers}
    honest = picked_row(rows, "first", OTHER_ROWS)
    if honest is not None and not baseline_not_learnt(rows):
        numbers |= {"honest_gain": honest["value"], "honest_low": honest["low"]}
        numbers["honest_high"] = honest["high"]
    return numbers
