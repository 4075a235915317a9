"""Frozen probing (Singh & Giovanardi 2020, sections 4.4 and 6.2).

The top k layers are removed, the rest is frozen, embeddings too, and a classifier alone is trained
on the state of [CLS]; k goes from 0 to all layers, and one pass over the rows gives every k. The
paper reports a lower peak than with re-initialisation, that the top two layers hurt, that QNLI
falls at the sixth removed layer and SST-2 gradually, and on CoLA a Matthews correlation of 0 at all
but two points. Its recipe (learning rate 2e-5, 3 epochs) hardly moves a linear layer, so there is
also a converged one, with the commonest label and a random encoder as baselines.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.kit.arms import (
    FRACTIONS,
    LEAST_STEPS,
    MATCH_STEPS,
    MAX_LENGTH,
    asked_recipe,
    n_rows_of,
)
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.seed_curves import size_name
from microtome.experiments.kit.subject import DATA, MODEL, TRAINING, Subject
from microtome.models.checkpoint import look_at_fetched
from microtome.models.heads import is_pooler_tensor
from microtome.runs import Trial, open_run
from microtome.tasks.task import SINGLE_ANSWER_KINDS

SECTION = "Singh & Giovanardi 2020, section 4.4"
QUESTION = "How much of the task can be read from each depth, without fine-tuning?"
COLUMNS = (
    "removed", "fraction", "n_train", "encoder", "recipe", "feature", "seed", "metric", "value",
    "low", "high", "n", "delta",
)  # fmt: skip
# Encoders; rows of a stored re-initialisation, drawn over the curves of probes, have the last.
PRETRAINED, RANDOM, MAJORITY = "pretrained", "random", "majority"
REINITIALIZED = "reinitialized"
KEPT = ("fraction", "n_train", "seed", "metric", "primary", "value", "low", "high", "n")
RECIPES = ("paper", "converged")
FEATURES = ("cls", "mean", "pooler", "trained-pooler")
PAPERS_RECIPE = (
    Option("epochs", None, "of the paper's recipe; 3 unless given", "whole"),
    Option("batch_size", None, "of the paper's recipe; 32 unless given", "whole"),
    Option("learning_rate", None, "of the paper's recipe; 2e-5 unless given", "number"),
    Option("warmup", None, "of the paper's recipe; 0.1 unless given", "number"),
    Option("weight_decay", None, "of the paper's recipe; 0.01 unless given", "number"),
)
OPTIONS = (
    Option("recipes", list(RECIPES), "of the classifier: paper, converged", "words"),
    Option("feature", "cls", "what it reads: cls, mean, pooler (as it is) or trained-pooler"),
    Option("beside", None, "a run of reinitialization, drawn over these curves", "path"),
    FRACTIONS,
    Option("seeds", [0], "of the classifier, a fraction's rows, the random encoder", "numbers"),
    MATCH_STEPS,
    *PAPERS_RECIPE,
    LEAST_STEPS,
    MAX_LENGTH,
)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One pass of the encoder and one of a random one for every size and seed."""
    check(subject, settings)
    asked_recipe(subject, settings)
    recipe = {option.name: settings[option.name] for option in PAPERS_RECIPE}
    common = {
        "recipes": sorted(settings["recipes"]),
        "feature": settings["feature"],
        "match_steps": settings["match_steps"],
        "least_steps": settings["least_steps"],
        "recipe": {name: value for name, value in recipe.items() if value is not None},
    }
    trials = [
        subject.trial(
            "frozen-probing.probe",
            {**common, "encoder": encoder, "fraction": fraction, "seed": seed, "n_train": n_train},
            label=f"probe the {encoder} encoder, seed {seed}, {size_name(fraction)}",
            reads=(MODEL, DATA, TRAINING),
        )
        for fraction, n_train in n_rows_of(subject, settings["fractions"]).items()
        for seed in settings["seeds"]
        for encoder in (PRETRAINED, RANDOM)
    ]
    if settings["beside"] is not None:
        folder = Path(settings["beside"])
        # The rows are part of the request: the trial gives them again.
        trials.append(
            subject.trial(
                "frozen-probing.repeat_rows", {"stored_rows": rows_of_run(folder, subject)},
                label=f"rows of {folder.name}", reads=(MODEL, DATA, TRAINING),
            )
        )  # fmt: skip
    return trials


def check(subject: Subject, settings: Mapping[str, Any]) -> None:
    """Refuse what no probe can do, before anything is computed."""
    if unknown := [recipe for recipe in settings["recipes"] if recipe not in RECIPES]:
        raise RequestError(f"--recipes must be {' or '.join(RECIPES)}, got {unknown[0]}")
    feature = settings["feature"]
    if feature not in FEATURES:
        raise RequestError(f"--feature must be {' or '.join(FEATURES)}, got {feature}")
    if subject.dataset.task.kind == "spans":
        raise RequestError(
            f"{subject.task} asks for places in a passage, and a probe reads one state per text",
            "probe a classification or regression task",
        )
    if subject.dataset.task.kind not in SINGLE_ANSWER_KINDS:
        raise RequestError(
            f"a probe gives one label or number per text, and {subject.task} is"
            f" {subject.dataset.task.kind}",
            "probe a classification or regression task",
        )
    if "pooler" in feature and not has_pooler(subject.model_path):
        raise RequestError(
            f"--feature {feature} needs a pooler, and {subject.model} has no pooler",
            "take cls or mean",
        )
    if feature == "trained-pooler" and "converged" in settings["recipes"]:
        raise RequestError(
            "--feature trained-pooler doesn't go with the converged recipe, which solves linear"
            " classifiers",
            "take the paper's alone: --recipes paper",
        )


def has_pooler(folder: Path) -> bool:
    """Whether a checkpoint holds a pooler."""
    return any(is_pooler_tensor(tensor.name) for tensor in look_at_fetched(folder).tensors)


def rows_of_run(folder: Path, subject: Subject) -> list[dict[str, Any]]:
    """The primary scores of a re-initialisation from the top, of the same model and rows."""
    content = subject.trial("finetuning.train", {}, reads=(MODEL, DATA, TRAINING)).content
    rows = [
        {key: row[key] for key in KEPT} | {"removed": row["reinitialized"]}
        for record in open_run(folder).records.values()
        if record.ok and record.columns.get("experiment") == "reinitialization"
        # A run of an older version doesn't know its tokenizer's content.
        if record.content.items() <= content.items()
        for row in record.rows
        if row["side"] == "top" and row["metric"] == row["primary"]
    ]
    if not rows:
        raise RequestError(
            f"--beside {folder} holds no reinitialization of {subject.model} on these rows of"
            f" {subject.task}",
            "give the folder of a run with --side top, the same model, task and --limit",
        )
    return rows
