"""The table of docs/results.md on cheap scores of layers and heads, from stored runs of predictors.

Every run of ``predictors`` whose rows are in docs/results is a column: the rank correlation of a
score with the measured loss, and what it costs to cut by the score instead of by measuring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import stored_rows

from microtome.experiments.field.predictors.report import (
    HEALED,
    agreements,
    baseline_of,
    cuts_of,
    judged,
)
from microtome.experiments.kit.wording import correlation, points

EXPERIMENT = "predictors"
SHOWN = {  # the unit, before its rows' stages, what the table is called
    "Layers removed": ("layer", ""),
    "Heads disabled": ("head", ""),
    "Layers removed, then healed": ("layer", HEALED),
}
Rows = Sequence[Mapping[str, Any]]


def tables() -> str:
    """A table for layers, for heads, and for healed layers; then what a score may be used for."""
    runs = _runs()
    parts = []
    for title, (unit, after) in SHOWN.items():
        found = {name: rows for name, rows in runs.items() if agreements(rows, unit, after)}
        if found:
            parts += [f"**{title}**\n", _table(found, unit, after), _verdicts(found, unit, after)]
    return "\n".join(parts)


def _runs() -> dict[str, Rows]:
    """The rows of every stored run, by model and task."""
    groups = (
        (f"{model}, {task}", rows)
        for results in stored_rows.stored()
        for (experiment, model, task), rows in stored_rows.grouped(
            results.rows, "experiment", "model", "task"
        )
        if experiment == EXPERIMENT
    )
    return dict(groups)


def _table(runs: Mapping[str, Rows], unit: str, after: str) -> str:
    scores = dict.fromkeys(
        row["score"] for rows in runs.values() for row in agreements(rows, unit, after)
    )
    lines = [["score", *(_heading(name, rows) for name, rows in runs.items())]]
    for score in scores:
        cells = [_cell(rows, unit, after, score) for rows in runs.values()]
        lines.append([score, *cells])
    costs = [_seconds(agreements(rows, unit, after)) for rows in runs.values()]
    lines.append(["seconds: the dearest score, the sweep", *costs])
    shown = ["| " + " | ".join(line) + " |" for line in lines]
    shown.insert(1, "|" + "---|" * len(lines[0]))
    return "\n".join(shown) + "\n"


def _seconds(found: Rows) -> str:
    """What the trial of the dearest score took, and what measuring all units took."""
    return f"{max(row['seconds'] for row in found):.0f}, {found[0]['sweep_seconds']:.0f}"


def _heading(name: str, rows: Rows) -> str:
    base = baseline_of(rows)
    return f"{name} ({base['n']:,} rows, {base['metric']} {100 * base['value']:.1f})"


def _cell(rows: Rows, unit: str, after: str, score: str) -> str:
    """Spearman with its interval; the regret of the middle size with its own."""
    found = [row for row in agreements(rows, unit, after) if row["score"] == score]
    if not found or found[0]["spearman"] is None:
        return "–"
    told = correlation(*(found[0][name] for name in ("spearman", "low", "high")))
    cuts = sorted(
        (cut for cut in cuts_of(rows, unit, after) if cut["score"] == score),
        key=lambda cut: cut["n_cut"],
    )
    if not cuts:
        return told
    cut = cuts[len(cuts) // 2]
    ends = f"{points(cut['regret_low'])} to {points(cut['regret_high'])}"
    return f"{told}; {cut['n_cut']}: {points(cut['regret'])} ({ends})"


def _verdicts(runs: Mapping[str, Rows], unit: str, after: str) -> str:
    """Which scores mislead, which are sure to agree, which do neither: by the experiment's rule."""
    verdicts: dict[str, list[str]] = {}
    for rows in runs.values():
        for row in agreements(rows, unit, after):
            verdicts.setdefault(row["score"], []).append(judged(rows, row, after))
    parts = []
    for verdict in ("misleads", "agrees"):
        counts = {score: found.count(verdict) for score, found in verdicts.items()}
        told = [f"{score} in {n} of {len(verdicts[score])}" for score, n in counts.items() if n]
        parts.append(f"{verdict.capitalize()}: {', '.join(told) or 'none'}.")
    never = [score for score, found in verdicts.items() if "misleads" not in found]
    return f"{' '.join(parts)} Never misleads: {', '.join(never) or 'none'}.\n"
