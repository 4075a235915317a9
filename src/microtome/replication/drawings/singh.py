"""The exhibits of Singh & Giovanardi: re-initialisation, probing, distances of weights."""

from __future__ import annotations

from microtome.experiments.kit.seed_curves import TOP_AXIS, curve_of, size_name, sizes
from microtome.experiments.singh.frozen_probing.claims import claims
from microtome.experiments.singh.frozen_probing.plan import KEPT, RANDOM, REINITIALIZED
from microtome.experiments.singh.frozen_probing.report import probed, recipes
from microtome.experiments.singh.reinitialization.report import scores, what_it_costs
from microtome.experiments.singh.weight_drift.report import drift, how_it_grows, sizes_or_base
from microtome.papers.answer import DOESNT_HOLD, HOLDS, Answer
from microtome.papers.exhibit import Exhibit
from microtome.papers.singh_exhibits import MATCHED
from microtome.replication.drawings.titles import joint, panels
from microtome.replication.measured import Measured, name_of
from microtome.views import Curve, Series, TidyRow, TidyRows, View


def score_by_reinitialized(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """One line per training size, a panel for each model."""
    curves = []
    for model, task, rows in measured.pairs("reinitialization"):
        lines = [
            curve_of(scores(rows, size), "reinitialized", size_name(size)) for size in sizes(rows)
        ]
        title, metric = f"{name_of(model)} on {task}", rows[0]["primary"]
        shown, said = tuple(line for line in lines if line), what_it_costs(rows)
        curves.append(Curve(title, TOP_AXIS, metric, shown, says=said))
    return panels(exhibit.title, curves)


def sizes_matched(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """One line per task, with the training size that is nearest to the paper's 670 rows."""
    curves = []
    for model in measured.models:
        lines: list[Series] = []
        said: dict[str, str] = {}
        metric = ""
        for task in measured.tasks:
            rows = measured.of("reinitialization", model, task)
            if not rows:
                continue
            n_rows = {row["fraction"]: row["n_train"] for row in rows}
            size = min(sizes(rows), key=lambda each: abs(n_rows[each] - MATCHED))
            metric = rows[0]["primary"]
            line = curve_of(scores(rows, size), "reinitialized", f"{task}, {n_rows[size]:,} rows")
            lines += [line] if line is not None else []
            said[task] = what_it_costs(rows, size)
        if lines:
            title = name_of(model)
            curves.append(Curve(title, TOP_AXIS, metric, tuple(lines), says=joint(said)))
    return panels(exhibit.title, curves)


def probing(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """Frozen and re-initialised layers over each other, at the largest size that both have."""
    curves = []
    for model, task, rows in measured.pairs("frozen-probing"):
        tuned = measured.of("reinitialization", model, task)
        both = [size for size in sizes(rows) if size in sizes(tuned)]
        size = both[0] if both else sizes(rows)[0]
        lines = [
            curve_of(probed(rows, recipe, size), "removed", f"frozen, {recipe} recipe")
            for recipe in recipes(rows)
        ]
        lines.append(curve_of(scores(tuned, size), "reinitialized", "re-initialised, all trained"))
        control = probed(rows, recipes(rows)[-1], size, RANDOM)
        lines.append(curve_of(control, "removed", "random encoder, frozen", is_control=True))
        title = f"{name_of(model)} on {task}, {size_name(size)}"
        shown = tuple(line for line in lines if line is not None)
        said = _which_peaks_higher(claims(with_reinitialized(rows, tuned))["peak"])
        curves.append(Curve(title, TOP_AXIS, rows[0]["primary"], shown, says=said))
    return panels(exhibit.title, curves)


def _which_peaks_higher(peak: Answer) -> str:
    """Whether the best frozen depth is sure to be below, or above, the best re-initialisation."""
    than = "than re-initialised ones that are all trained"
    said: dict[str, str] = {
        HOLDS: f"Frozen layers reach less {than}", DOESNT_HOLD: f"Frozen layers reach more {than}",
    }  # fmt: skip
    return said.get(peak.verdict or "", "")


def with_reinitialized(rows: TidyRows, tuned: TidyRows) -> list[TidyRow]:
    """Rows of probes with those of re-initialised layers, as ``--beside`` would add them."""
    empty = dict.fromkeys(("recipe", "feature", "depth", "delta", "delta_low", "delta_high"))
    return [
        *rows,
        *(
            {
                **{key: row[key] for key in KEPT}, **empty, "encoder": REINITIALIZED,
                "removed": row["reinitialized"], "task": row["task"], "model": row["model"],
            }
            for row in tuned
            if row["side"] == "top" and row["metric"] == row["primary"]
        ),
    ]  # fmt: skip


def distance_by_layer(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """One line per training size, a panel for each model."""
    curves = []
    for model, task, rows in measured.pairs("weight-drift"):
        lines = []
        for size in sizes_or_base(rows):
            by_layer = drift(rows, size)
            name = "from the base" if size is None else size_name(size)
            lines.append(Series(name, tuple(map(float, by_layer)), tuple(by_layer.values())))
        title = f"{name_of(model)} on {task}"
        unlearnt = measured.not_learnt("weight-drift", model, task)
        label, said = "Frobenius distance", "" if unlearnt else how_it_grows(rows)
        curves.append(Curve(title, "layer", label, tuple(lines), percent=False, says=said))
    return panels(exhibit.title, curves)
