"""Frozen probing (Singh & Giovanardi 2020, sections 4.4 and 6.2).

The top k layers are removed, the rest is frozen, embeddings too, and a classifier alone is trained
on the state of [CLS]; k goes from 0 to all layers, and one pass over the rows gives every k. The
paper reports a lower peak than with re-initialisation, that the top two layers hurt, that QNLI
falls at the sixth removed layer and SST-2 gradually, and on CoLA a Matthews correlation of 0 at all
but two points. Its recipe (learning rate 2e-5, 3 epochs) hardly moves a linear layer, so a
converged one stands beside it, with the commonest label and a random encoder as baselines.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microtome.errors import RequestError
from microtome.experiments.beside import beside_trial
from microtome.experiments.experiment import Experiment
from microtome.experiments.finetuning import (
    FRACTIONS,
    MATCH_STEPS,
    steps_of,
    training_rows,
)
from microtome.experiments.options import Option
from microtome.experiments.probing_words import (
    MAJORITY,
    PRETRAINED,
    RANDOM,
    RECIPES,
    finding,
    summary,
    views,
)
from microtome.experiments.singh_claims import frozen_probing as measured
from microtome.experiments.subject import MODEL, Subject
from microtome.experiments.training_sizes import check_recipe, n_rows_of, size_name
from microtome.runs import Context, Result, Trial

if TYPE_CHECKING:
    from microtome.tasks import Dataset
    from microtome.training.probes import Probed

NAME = "frozen-probing"
OPTIONS = (
    Option("epochs", None, "of the paper's recipe; 3 unless given", "whole"),
    Option("batch_size", None, "of the paper's recipe; 32 unless given", "whole"),
    Option("learning_rate", None, "of the paper's recipe; 2e-5 unless given", "number"),
)
FEATURES = ("cls", "mean", "pooler", "trained-pooler")


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
