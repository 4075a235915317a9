"""Weight drift (Singh & Giovanardi 2020, sections 4.5 and 6.3).

Per layer, the Frobenius distance ‖W_base − W_fine-tuned‖ of the output sub-layer's projection, for
models fine-tuned on more and on less data. The paper reports that it grows with depth, that the
curve shifts up and gets steeper with more data, and that CoLA's is noisy. More data were also more
updates there, and a distance grows with updates: --match-steps gives every size as many. Beside the
distance stand the one relative to the norm and the one per parameter (root mean square).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.experiment import Experiment, Rows, counted
from microtome.experiments.finetuning import MATCH_STEPS, RECIPE, SEEDS, Arm, arm_trial
from microtome.experiments.layer_counts import layers_of
from microtome.experiments.options import Option
from microtome.experiments.subject import MODEL, Subject, model_place, other_model
from microtome.experiments.training_sizes import check_recipe, n_rows_of, size_name, sizes
from microtome.runs import Context, Result, Trial
from microtome.views import Curve, HeatMap, Series, View

NAME = "weight-drift"
PART = "output"  # the paper's: the feed-forward half's projection back to the model's width
PARTS = ("query", "key", "value", "attention_output", "intermediate", "output")
SIZES = Option(
    "fractions", [1.0, 0.1], "training sizes: 1 all, below 1 a share, 2+ rows", "fractions"
)
BASE = "base"
MEASURES = {
    "distance": "Frobenius distance",
    "relative": "distance relative to the norm of the base",
    "per_parameter": "root mean square change of a weight",
}


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One comparison with the base; or fine-tunings, and the distance that each one went."""
    parts = parts_of(settings["parts"])
    if settings["base"] is not None:
        return [_against_base(subject, settings, parts)]
    if subject.found is None:
        raise RequestError(
            "weight-drift needs two checkpoints, and one was given",
            "name the pre-trained one: --base MODEL; or a task to fine-tune on here: --task TASK",
        )
    check_recipe(subject, settings)
    first, trials = layers_of(subject).first, []
    for fraction, n_train in n_rows_of(subject, settings["fractions"]).items():
        for seed in settings["seeds"]:
            arm = Arm(
                edits=first, seed=seed, fraction=fraction, keep=True, new_head=True,
                match_steps=settings["match_steps"],
                label=f"fine-tune, seed {seed}, {size_name(fraction)}",
            )  # fmt: skip
            tuned = arm_trial(subject, "finetuning", settings, arm)
            about = {"fraction": fraction, "n_train": n_train, "seed": seed}
            about["match_steps"] = settings["match_steps"]
            label = f"drift, seed {seed}, {size_name(fraction)}"
            trials += [tuned, _drift_trial(subject, about, parts, (tuned,), label)]
    return trials


def parts_of(words: list[str]) -> list[str]:
    """The parts that were asked for, in the order of a layer."""
    if unknown := [word for word in words if word not in (*PARTS, "all")]:
        raise RequestError(f"--parts {unknown[0]} given, {', '.join(PARTS)} or all wanted")
    return [part for part in PARTS if part in words or "all" in words]


def _against_base(subject: Subject, settings: Mapping[str, Any], parts: list[str]) -> Trial:
    from microtome.experiments.stored_parts import check_same_shape

    for option in (SIZES, SEEDS, MATCH_STEPS, *RECIPE):
        if settings[option.name] != option.default:
            raise RequestError(
                f"{option.flag} given with --base, where nothing is trained",
                "leave one of them out",
            )
    base = other_model(settings["base"])
    check_same_shape(subject.model, subject.model_path, settings["base"], base.path)
    about = {"fraction": None, "n_train": None, "seed": None, "match_steps": None}
    return subject.trial(
        "weight_drift:measure", NAME, {"about": about, "parts": parts}, others={BASE: base},
        label=f"drift of {subject.model} from {settings['base']}",
    )  # fmt: skip


def _drift_trial(
    subject: Subject,
    about: Mapping[str, Any],
    parts: list[str],
    needs: tuple[Trial, ...],
    label: str,
) -> Trial:
    request = {"about": dict(about), "parts": parts}
    return subject.trial("weight_drift:measure", NAME, request, needs=needs, label=label)


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """The distance of every layer and part from the base, or from the subject's own weights."""
    from microtome.experiments.stored_parts import sharing, stored_parts

    tuned = model_place(context)
    base = Path(context.where.get(BASE, context.where[MODEL]))
    parts = tuple(request["parts"])
    own = sharing(tuned)
    rows = [
        {**request["about"], "layer": new.layer, "part": new.part, **distances(old, new)}
        for old, new in zip(stored_parts(base, parts), stored_parts(tuned, parts), strict=True)
        if own[new.layer] == new.layer  # a layer that others share counts once
    ]
    return Result(rows=rows)


def distances(old: Any, new: Any) -> dict[str, float | int | None]:  # noqa: ANN401  # StoredParts
    """Three measures of one projection's change."""
    before, after = old.read(), new.read()
    distance, norm = float((after - before).norm()), float(before.norm())
    return {
        "distance": distance,
        "relative": distance / norm if norm else None,
        "per_parameter": distance / before.numel() ** 0.5,
        "norm": norm,
        "n_parameters": before.numel(),
    }


def drift(
    rows: Rows, fraction: float | None, part: str | None = None, measure: str = "distance"
) -> dict[int, float]:
    """Layer → mean over seeds, of one part and training size."""
    part = part or shown_part(rows)
    found: dict[int, dict[Any, float]] = {}
    for row in rows:
        if row["part"] == part and row["fraction"] == fraction and row[measure] is not None:
            found.setdefault(row["layer"], {})[row["seed"]] = row[measure]
    return {layer: sum(own.values()) / len(own) for layer, own in sorted(found.items())}


def shown_part(rows: Rows) -> str:
    """The paper's part where it was measured, else the first."""
    there = {row["part"] for row in rows}
    return PART if PART in there else next(part for part in PARTS if part in there)


def rank_correlation(curve: Mapping[int, float]) -> float:
    """Spearman's, of layer and distance; 0 where no layer differs from another."""
    import numpy as np

    from microtome.statistics import spearman, value_of

    distances = np.array(list(curve.values()))
    return float(value_of(spearman(np.array(list(curve), dtype=float), distances)))


def steepness(curve: Mapping[int, float]) -> float:
    """The least-squares slope: distance per layer."""
    import numpy as np

    return float(np.polyfit(list(curve), list(curve.values()), 1)[0])


def views(rows: Rows) -> tuple[View, ...]:
    """The paper's picture in three measures; with more parts, a map of them."""
    shown: list[View] = [_curve(rows, measure, words) for measure, words in MEASURES.items()]
    if len({row["part"] for row in rows}) > 1:
        shown.append(_map(rows))
    return tuple(shown)


def _sizes(rows: Rows) -> list[float | None]:
    return [*sizes(rows)] or [None]


def _curve(rows: Rows, measure: str, words: str) -> Curve:
    lines = []
    for size in _sizes(rows):
        curve = drift(rows, size, measure=measure)
        ends = _ends(rows, size, measure)
        lines.append(
            Series(
                "from the base" if size is None else size_name(size),
                tuple(map(float, curve)), tuple(curve.values()),
                tuple(low for low, _ in ends), tuple(high for _, high in ends),
            )
        )  # fmt: skip
    title = f"Drift of the {shown_part(rows)} projection: {words}"
    return Curve(title, "layer", words, tuple(lines), percent=False)


def _ends(rows: Rows, size: float | None, measure: str) -> list[tuple[float | None, float | None]]:
    """A t-interval over seeds at every layer, from three seeds on."""
    from microtome.statistics import over_seeds

    by_layer: dict[int, dict[Any, float]] = {}
    for row in rows:
        if row["part"] == shown_part(rows) and row["fraction"] == size and row[measure] is not None:
            by_layer.setdefault(row["layer"], {})[row["seed"]] = row[measure]
    found = [over_seeds(list(own.values())).interval for _, own in sorted(by_layer.items())]
    return [(None, None) if one is None else (max(0.0, one.low), one.high) for one in found]


def _map(rows: Rows) -> HeatMap:
    size = _sizes(rows)[0]
    parts = [part for part in PARTS if any(row["part"] == part for row in rows)]
    columns = [drift(rows, size, part, "per_parameter") for part in parts]
    layers = sorted(columns[0])
    return HeatMap(
        title="Root mean square change of a weight, by layer and part",
        row_label="layer", column_label="part",
        rows=tuple(map(str, layers)), columns=tuple(parts),
        values=tuple(tuple(column.get(layer) for column in columns) for layer in layers),
        value_label=MEASURES["per_parameter"], percent=False,
    )  # fmt: skip


def finding(rows: Rows) -> str:
    """How far the weights went, and where most, in words computed from rows."""
    words = [_of_size(rows, size) for size in _sizes(rows)]
    if len(words) > 1:
        matched = any(row["match_steps"] for row in rows)
        words.append(
            "Every size had as many updates."
            if matched
            else "More data were also more updates, and a distance grows with updates: see"
            " --match-steps."
        )
    return " ".join(words)


def _of_size(rows: Rows, size: float | None) -> str:
    curve, relative = drift(rows, size), drift(rows, size, measure="relative")
    most = max(curve, key=lambda layer: curve[layer])
    start = "" if size is None else f"With {size_name(size)}: "
    words = (
        f"{start}the {shown_part(rows)} projection went furthest in layer {most}: {curve[most]:.3g}"
        f" ({100 * relative.get(most, 0.0):.2g} % of its norm), {min(curve.values()):.3g} at least."
    )
    words = words[:1].upper() + words[1:]
    if len(curve) < 3:
        return (
            f"{words} {counted(len(curve), 'layer')} with weights of their own: no trend to tell."
        )
    rho = f"{rank_correlation(curve):+.2f}".replace("-", "−")
    return f"{words} Rank correlation of layer and distance: {rho}."


def summary(rows: Rows) -> dict[str, Any]:
    """Mean distance and trend of every size."""
    found = {}
    for size in _sizes(rows):
        curve = drift(rows, size)
        found["base" if size is None else f"{size:g}"] = {
            "mean": sum(curve.values()) / len(curve),
            "rank_correlation": rank_correlation(curve) if len(curve) > 2 else None,
        }
    return found


def measured(rows: Rows) -> Mapping[str, str]:
    """The paper's claims, answered from rows."""
    from microtome.experiments.singh_claims import weight_drift

    return weight_drift(rows)


EXPERIMENT = Experiment(
    name=NAME,
    section="Singh & Giovanardi 2020, section 4.5",
    question="How far did fine-tuning move each layer's weights?",
    method=__doc__ or "",
    columns=(
        "layer", "part", "fraction", "n_train", "seed", "distance", "relative", "per_parameter",
        "norm", "n_parameters",
    ),
    plan=plan,
    views=views,
    finding=finding,
    summary=summary,
    measured=measured,
    needs_rows=False,
    options=(
        Option(BASE, None, "the pre-trained model; without it, one is fine-tuned here", "model"),
        Option("parts", [PART], f"{', '.join(PARTS)}, or all", "words"),
        SIZES,
        SEEDS,
        MATCH_STEPS,
        *RECIPE,
    ),
)  # fmt: skip
