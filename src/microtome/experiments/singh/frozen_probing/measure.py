"""Probes of every depth on one pass of the frozen encoder, and their baselines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from microtome.experiments.kit.paired_comparison import compare
from microtome.experiments.kit.subject import MODEL
from microtome.experiments.kit.training import score_rows
from microtome.experiments.kit.trial_inputs import training_rows
from microtome.experiments.singh.frozen_probing.plan import (
    MAJORITY,
    PRETRAINED,
    RANDOM,
    REINITIALIZED,
)
from microtome.models.source import resolve
from microtome.observe.evaluation import outcome
from microtome.runs import Context, Result
from microtome.tasks import Dataset
from microtome.tasks.scoring.constant import answer_columns
from microtome.training.probe.probes import PAPER, Probed, collect, majority, probe_depths
from microtome.training.recipe import Recipe


def probe(request: Mapping[str, Any], context: Context) -> Result:
    """The probes of every depth on one pass, and what the commonest label would score."""
    train, dev = training_rows(request, context)
    part = train.fraction(request["fraction"], seed=request["seed"])
    shared = ("encoder", "feature", "fraction", "seed", "n_train")
    about = {key: request[key] for key in shared} | {"primary": dev.task.primary}
    rows, arrays = [], {}
    edits = f"randomize(seed={request['seed']})" if request["encoder"] == RANDOM else None
    with collect(
        resolve(context.where[MODEL]), part, dev, features=(request["feature"],), edits=edits,
        scratch=context.scratch, device=context.device,
    ) as data:  # fmt: skip
        for recipe in request["recipes"]:
            context.report(f"training the {recipe} classifiers")
            probed = probe_depths(
                data, feature=request["feature"], recipe=recipe, seed=request["seed"],
                settings=papers_recipe(request, len(part), len(train)),
            )  # fmt: skip
            rows += probe_rows(probed, dev, about | {"recipe": recipe})
            arrays[recipe] = np.stack([depth.predictions for depth in probed.depths])
    if request["encoder"] == PRETRAINED:
        nothing_read = dict.fromkeys(("recipe", "feature", "removed", "depth"))
        common = about | {"encoder": MAJORITY} | nothing_read
        rows += score_rows(common, dev, majority(part, dev))
    return Result(rows=rows, arrays=arrays)


def papers_recipe(request: Mapping[str, Any], n_rows: int, n_all: int) -> Recipe:
    """The paper's recipe with what was asked for, for ``n_rows`` of ``n_all`` training rows.

    On request there are as many updates as all rows give, or some number of them at least.
    """
    recipe = PAPER.but(**request["recipe"])
    matched = recipe.n_updates(n_all) if request["match_steps"] else 0
    return recipe.at_least(max(matched, request["least_steps"]), n_rows)


def probe_rows(probed: Probed, dev: Dataset, about: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row per depth and metric; the primary one is compared with the whole encoder's, paired."""
    primary = str(dev.task.primary)
    answers = [outcome(dev, depth, primary) for depth in probed.depths]
    rows: list[dict[str, Any]] = []
    for scored in probed.rows():
        row: dict[str, Any] = {**about, **scored}
        row |= dict.fromkeys(("delta", "delta_low", "delta_high"))
        row |= answer_columns(dev, probed.depths[row["depth"]], row["metric"])
        if row["metric"] == primary and row["removed"]:
            delta = compare(answers[row["depth"]], answers[-1], dev.scored_clusters).difference
            row |= {"delta": delta.value, "delta_low": delta.low, "delta_high": delta.high}
        rows.append(row)
    return rows


def repeat_rows(request: Mapping[str, Any], context: Context) -> Result:
    """The rows of a stored re-initialisation, with the columns of probes."""
    empty = ("recipe", "feature", "depth", "delta", "delta_low", "delta_high")
    about = {"encoder": REINITIALIZED, **dict.fromkeys(empty)}
    return Result(rows=[{**about, **row} for row in request["stored_rows"]])
