"""Frozen probing (Singh & Giovanardi 2020, sections 4.4 and 6.2).

The top k layers are removed, the rest is frozen, embeddings too, and a classifier alone is trained
on the state of [CLS]; k goes from 0 to all layers, and one pass over the rows gives every k. The
paper reports a lower peak than with re-initialisation, that the top two layers hurt, that QNLI
falls at the sixth removed layer and SST-2 gradually, and on CoLA a Matthews correlation of 0 at all
but two points. Its recipe (learning rate 2e-5, 3 epochs) hardly moves a linear layer, so a
converged one stands beside it, with the commonest label and a random encoder as baselines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microtome.errors import RequestError
from microtome.experiments.beside import REINITIALIZED, beside_trial
from microtome.experiments.experiment import Experiment, Row, Rows, percent, points
from microtome.experiments.finetuning import (
    FRACTIONS,
    MATCH_STEPS,
    steps_of,
    training_rows,
)
from microtome.experiments.options import Option
from microtome.experiments.seed_curves import TOP_AXIS, by_place, curve_of, mean_of
from microtome.experiments.subject import MODEL, Subject
from microtome.experiments.training_sizes import check_recipe, n_rows_of, size_name, sizes
from microtome.runs import Context, Result, Trial
from microtome.views import Curve, View, table_of

if TYPE_CHECKING:
    from microtome.tasks import Dataset
    from microtome.training.probes import Probed

NAME = "frozen-probing"
OPTIONS = (
    Option("epochs", None, "of the paper's recipe; 3 unless given", "whole"),
    Option("batch_size", None, "of the paper's recipe; 32 unless given", "whole"),
    Option("learning_rate", None, "of the paper's recipe; 2e-5 unless given", "number"),
)
RECIPES = ("paper", "converged")
FEATURES = ("cls", "mean", "pooler", "trained-pooler")
PRETRAINED, RANDOM, MAJORITY = "pretrained", "random", "majority"


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One pass of the encoder and one of a random one for every size and seed."""
    check(subject, settings)
    check_recipe(subject, settings)
    n_rows = n_rows_of(subject, settings["fractions"])
    own = {name: settings[name] for name in (option.name for option in OPTIONS)}
    trials = []
    for fraction, n_train in n_rows.items():
        for seed in settings["seeds"]:
            for encoder in (PRETRAINED, RANDOM):
                request = {
                    "encoder": encoder, "fraction": fraction, "seed": seed, "n_train": n_train,
                    "recipes": sorted(settings["recipes"]), "feature": settings["feature"],
                    "match_steps": settings["match_steps"],
                    "recipe": {name: value for name, value in own.items() if value is not None},
                }  # fmt: skip
                label = f"probe the {encoder} encoder, seed {seed}, {size_name(fraction)}"
                trials.append(
                    subject.trial("frozen_probing:measure", NAME, request, label=label, trains=True)
                )
    if settings["beside"] is not None:
        trials.append(beside_trial(subject, NAME, Path(settings["beside"])))
    return trials


def check(subject: Subject, settings: Mapping[str, Any]) -> None:
    """Refuse what no probe can do, before anything is computed."""
    if unknown := [recipe for recipe in settings["recipes"] if recipe not in RECIPES]:
        raise RequestError(f"--recipes {unknown[0]} given, {' or '.join(RECIPES)} wanted")
    feature = settings["feature"]
    if feature not in FEATURES:
        raise RequestError(f"--feature {feature} given, {' or '.join(FEATURES)} wanted")
    if subject.dataset.task.kind == "span":
        raise RequestError(
            f"{subject.task} asks for places in a passage, and a probe reads one state per text",
            "probe a classification or regression task",
        )
    if "pooler" in feature and not has_pooler(subject.model_path):
        raise RequestError(
            f"--feature {feature} given, and {subject.model} has no pooler", "take cls or mean"
        )
    if feature == "trained-pooler" and "converged" in settings["recipes"]:
        raise RequestError(
            "--feature trained-pooler given with the converged recipe, which solves linear"
            " classifiers",
            "take the paper's alone: --recipes paper",
        )


def has_pooler(folder: Path) -> bool:
    """Whether a checkpoint holds a pooler."""
    from microtome.models.checkpoint import look_at
    from microtome.models.heads import is_pooler_tensor

    return any(is_pooler_tensor(tensor.name) for tensor in look_at(folder).tensors)


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """The probes of every depth on one pass, and what the commonest label would score."""
    import numpy as np

    from microtome.models import resolve
    from microtome.training.probes import collect, majority, probe_depths

    train, dev = training_rows(request, context)
    part = train.fraction(request["fraction"], seed=request["seed"])
    rows, arrays = [], {}
    edits = f"randomize(seed={request['seed']})" if request["encoder"] == RANDOM else None
    with collect(
        resolve(context.where[MODEL]), part, dev, features=(request["feature"],), edits=edits,
        scratch=context.scratch, device=context.device,
    ) as data:  # fmt: skip
        for recipe in request["recipes"]:
            context.report(f"training the {recipe} classifiers")
            found = probe_depths(
                data, feature=request["feature"], recipe=recipe, seed=request["seed"],
                settings=recipe_of(request, len(train)),
            )  # fmt: skip
            rows += rows_of(found, dev, about(request, dev) | {"recipe": recipe})
            arrays[recipe] = np.stack([depth.predictions for depth in found.depths])
    if request["encoder"] == PRETRAINED:
        common = about(request, dev) | {"encoder": MAJORITY, "recipe": None, "feature": None}
        rows += [
            {**common, "removed": None, "depth": None, "metric": metric, "value": score.value,
             "low": score.low, "high": score.high, "n": score.n}
            for metric, score in majority(part, dev).scores.items()
        ]  # fmt: skip
    return Result(rows=rows, arrays=arrays)


def recipe_of(request: Mapping[str, Any], n_rows: int) -> Any:  # noqa: ANN401  # a Recipe
    """The paper's recipe with what was asked for; as many updates as all rows give, on request."""
    from microtome.training.probes import PAPER

    recipe = PAPER.but(**request["recipe"])
    return recipe.but(steps=steps_of(recipe, n_rows)) if request["match_steps"] else recipe


def about(request: Mapping[str, Any], dev: Dataset) -> dict[str, Any]:
    """The columns that every row of a trial shares."""
    kept = ("encoder", "feature", "fraction", "seed", "n_train")
    return {key: request[key] for key in kept} | {"primary": dev.task.primary}


def rows_of(found: Probed, dev: Dataset, common: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row per depth and metric; the primary one is compared with the whole encoder's, paired."""
    from microtome.evaluation import outcome
    from microtome.experiments.comparing import compare

    primary = str(dev.task.primary)
    answers = [outcome(dev, depth, primary) for depth in found.depths]
    rows: list[dict[str, Any]] = []
    for place in found.rows():
        row: dict[str, Any] = {**common, **place}
        row |= dict.fromkeys(("delta", "delta_low", "delta_high"))
        if row["metric"] == primary and row["removed"]:
            own = compare(answers[row["depth"]], answers[-1], dev.clusters).difference
            row |= {"delta": own.value, "delta_low": own.low, "delta_high": own.high}
        rows.append(row)
    return rows


def recipes(rows: Rows) -> list[str]:
    """The recipes among some rows, the paper's first."""
    return [one for one in RECIPES if any(row["recipe"] == one for row in rows)]


def _primary(rows: Iterable[Row], encoder: str, fraction: float) -> list[Row]:
    return [
        row
        for row in rows
        if row["encoder"] == encoder
        and row["metric"] == row["primary"]
        and row["fraction"] == fraction
    ]


def probed(rows: Rows, recipe: str, fraction: float, encoder: str = PRETRAINED) -> list[Row]:
    """The primary scores of one recipe and size."""
    return [row for row in _primary(rows, encoder, fraction) if row["recipe"] == recipe]


def beside(rows: Rows, fraction: float) -> list[Row]:
    """The primary scores of the re-initialisation beside, at one size."""
    return _primary(rows, REINITIALIZED, fraction)


def views(rows: Rows) -> tuple[View, ...]:
    """One picture per training size: the probes, their baselines, re-initialisation if given."""
    return (*(_curve(rows, size) for size in sizes(rows)), _table(rows))


def _curve(rows: Rows, size: float) -> Curve:
    lines = []
    for recipe in recipes(rows):
        lines.append(curve_of(probed(rows, recipe, size), "removed", f"frozen, {recipe}"))
        control = probed(rows, recipe, size, RANDOM)
        name = f"random encoder, {recipe}"
        lines.append(curve_of(control, "removed", name, is_control=True))
    lines.append(curve_of(beside(rows, size), "removed", "re-initialised, all fine-tuned"))
    # The commonest label reads nothing: the same at every place.
    places = sorted({row["removed"] for row in rows if row["removed"] is not None})
    common = [
        {**row, "removed": place} for row in _primary(rows, MAJORITY, size) for place in places
    ]
    lines.append(curve_of(common, "removed", "commonest label", is_control=True))
    title = f"Classifiers on frozen layers, {size_name(size)}"
    return Curve(title, TOP_AXIS, rows[0]["primary"], tuple(line for line in lines if line))


def _table(rows: Rows) -> View:
    columns = (
        "recipe", "fraction", "seed", "removed", "value", "delta", "delta_low", "delta_high",
    )  # fmt: skip
    own = [
        dict(row)
        for row in rows
        if row["encoder"] == PRETRAINED and row["metric"] == row["primary"]
    ]
    title = "Every depth, and the change against the whole encoder on the same rows"
    return table_of(title, own, columns, percent=columns[4:])


def finding(rows: Rows) -> str:
    """Where the frozen layers know the task best, in words computed from rows."""
    return " ".join(
        _of(rows, recipe, size) for size in sizes(rows) for recipe in recipes(rows)
        if probed(rows, recipe, size)
    )  # fmt: skip


def _of(rows: Rows, recipe: str, size: float) -> str:
    curve = by_place(probed(rows, recipe, size), "removed")
    best = max(curve, key=lambda k: mean_of(curve[k]))
    controls = by_place(probed(rows, recipe, size, RANDOM), "removed")
    common = mean_of(_primary(rows, MAJORITY, size))
    words = (
        f"With {size_name(size)} and the {recipe} recipe the {rows[0]['primary']} is highest,"
        f" {percent(mean_of(curve[best]))}, with {best} of {max(curve)} layers removed"
        f" ({percent(mean_of(curve[0]))} with none"
    )
    if best and len(curve[best]) == 1:
        row = curve[best][0]
        words += f": {points(row['delta'])} points, {points(row['delta_low'])} to"
        words += f" {points(row['delta_high'])}, picked and scored on the same rows"
    if controls:
        highest = max(mean_of(own) for own in controls.values())
        words += f"); a random encoder reaches {percent(highest)}, the commonest label"
    else:
        words += "); the commonest label"
    return f"{words} {percent(common)}."


def summary(rows: Rows) -> dict[str, Any]:
    """The best depth of every recipe and size."""
    found: dict[str, Any] = {}
    for size in sizes(rows):
        for recipe in recipes(rows):
            curve = by_place(probed(rows, recipe, size), "removed")
            if curve:
                best = max(curve, key=lambda k: mean_of(curve[k]))
                key = f"{recipe}, {size:g}"
                found[key] = {"best_removed": best, "best": mean_of(curve[best])}
                found[key]["whole"] = mean_of(curve[0])
    return found


def measured(rows: Rows) -> Mapping[str, str]:
    """The paper's claims, answered from rows."""
    from microtome.experiments.singh_claims import frozen_probing

    return frozen_probing(rows)


EXPERIMENT = Experiment(
    name=NAME,
    section="Singh & Giovanardi 2020, section 4.4",
    question="How much of the task can be read from each depth, without fine-tuning?",
    method=__doc__ or "",
    columns=(
        "removed", "fraction", "n_train", "encoder", "recipe", "feature", "seed", "metric", "value",
        "low", "high", "n", "delta",
    ),
    plan=plan,
    views=views,
    finding=finding,
    summary=summary,
    measured=measured,
    options=(
        Option("recipes", list(RECIPES), "of the classifier: paper, converged", "words"),
        Option("feature", "cls", "what it reads: cls, mean, pooler (as it is) or trained-pooler"),
        Option("beside", None, "a run of reinitialization, to lie over it", "path"),
        FRACTIONS,
        Option("seeds", [0], "of the classifier, a fraction's rows, the random encoder", "numbers"),
        MATCH_STEPS,
        *OPTIONS,
    ),
)  # fmt: skip
